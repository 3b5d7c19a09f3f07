#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int compare(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

int main(void)
{
	char *words[5000], line[256];
	int n = 0;
	FILE *f = fopen("words.txt", "r");
	while (n < 5000 && fgets(line, sizeof line, f))
		words[n++] = strdup(line);
	qsort(words, n, sizeof *words, compare);
	unsigned long hash = 5381;
	for (int i = 0; i < n; i++)
		for (char *p = words[i]; *p; p++)
			hash = hash * 33 + (unsigned char)*p;
	printf("%d lines, %lx, first %s", n, hash, words[0]);
	return 3;
}
