/* Carries out the lines of its standard input on a pool, which it makes if there is none: `lines POOL`. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <immintrin.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	(void)argc;
	char line[64];
	char *kept[64] = {0};
	int fd = open(argv[1], O_RDWR | O_CREAT, 0600);
	if (fd < 0 || ftruncate(fd, 4096))
		return 99;
	unsigned long *pool = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	for (unsigned done = 0; fgets(line, sizeof line, stdin); done++) {
		unsigned long number = strtoul(line + 1, NULL, 10);
		unsigned at = number % 64;
		free(kept[at]);
		kept[at] = memset(malloc(1000 + number % 50000), (int)done, 1000 + number % 50000);
		if (line[0] == 'a')
			pool[at * 8] += number;
		else if (line[0] == 'd')
			pool[at * 8] = 0;
		else
			for (unsigned i = 0; i < number % 5; i++)
				pool[at * 8 + 1] ^= pool[i * 8];
		_mm_clflush(&pool[at * 8]);
		printf("%lu %d\n", pool[at * 8], kept[at][number % 1000]);
	}
	return 0;
}
