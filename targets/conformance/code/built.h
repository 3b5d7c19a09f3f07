/* The program that the build_*.c files compile with different options. */
#include "pm.h"

static char *pm;
static long calls;

static int compare(const void *a, const void *b)
{
	PUT(long, pm, ++calls);
	return *(const int *)a - *(const int *)b;
}

static int __attribute__((noinline)) ackermann(int m, int n)
{
	PUT(int, pm + 8 + 4 * m, n);
	if (m == 0)
		return n + 1;
	if (n == 0)
		return ackermann(m - 1, 1);
	return ackermann(m - 1, ackermann(m, n - 1));
}

static int twice(int n) { PUT(int, pm + 64, n); return 2 * n; }
static int thrice(int n) { PUT(int, pm + 68, n); return 3 * n; }

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	pm = pm_create(argv[1], 8192);
	int numbers[12] = { 5, 3, 9, 1, 7, 2, 8, 0, 6, 4, 11, 10 };
	qsort(numbers, 12, sizeof *numbers, compare);
	for (int i = 0; i < 12; i++)
		CHECK(numbers[i] == i);
	CHECK(ackermann(2, 2) == 7);
	int (*volatile functions[])(int) = { twice, thrice, twice };
	int n = 1;
	for (int i = 0; i < 6; i++)
		n = functions[i % 3](n) % 1000;
	PUT(int, pm + 128, n);
	snprintf(pm + 256, 64, "%08.3f|%-6s|%x", 3.14159, "pm", 0xbeef);
	CHECK(strcmp(pm + 256, "0003.142|pm    |beef") == 0);
	pm_persist(pm + 256);
	return 0;
}
