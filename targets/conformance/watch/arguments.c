//@ build: c
//@ cflags: -O1
//@ args: --watch put --watch six --watch nothing --watch fibonacci
// Watched functions: entry with six integer arguments, return with the value; recursion; a function that is called by pointer;
// a name that no module has.
#include "pm.h"

static char *pm;

__attribute__((noipa)) long put(long at, long value, long c, long d, long e, long f)
{
	PUT(long, pm + 8 * at, value + c + d + e + f);
	return value - 1;
}
__attribute__((noipa)) long six(long a, long b, long c, long d, long e, long f)
{
	PUT(long, pm + 512, a + b + c + d + e + f);
	return -1;
}
__attribute__((noipa)) int fibonacci(int n, int b, int c, int d, int e, int f)
{
	PUT(int, pm + 1024 + 4 * n, n);
	return n < 2 ? n : fibonacci(n - 1, b, c, d, e, f) + fibonacci(n - 2, b, c, d, e, f);
}

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	pm = pm_create(argv[1], 4096);
	CHECK(six(1, -2, 3, 4, 5, 1L << 40) == -1);
	long (*volatile pointer)(long, long, long, long, long, long) = put;
	CHECK(pointer(3, 4, 0, 0, 0, 0) == 3 && put(4, -5, 0, 0, 0, 0) == -6);
	CHECK(fibonacci(5, 0, 0, 0, 0, 0) == 5);
	return 0;
}
