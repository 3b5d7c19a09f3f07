/* Call-heavy: naive Fibonacci of argv[1] and qsort with a comparator over argv[2] numbers. */
#include <stdio.h>
#include <stdlib.h>

static long __attribute__((noinline)) fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }

static int compare(const void *a, const void *b)
{
	unsigned x = *(const unsigned *)a, y = *(const unsigned *)b;
	return x < y ? -1 : x > y;
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 35;
	size_t count = argc > 2 ? (size_t)atol(argv[2]) : 1000000;
	unsigned *numbers = malloc(count * sizeof *numbers), x = 1;
	for (size_t i = 0; i < count; i++)
		numbers[i] = x = x * 1664525u + 1013904223u;
	qsort(numbers, count, sizeof *numbers, compare);
	printf("%ld %u\n", fib(n), numbers[count / 2]);
	return 0;
}
