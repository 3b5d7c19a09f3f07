//@ build: c
//@ cflags: -O2 -fno-inline
// Tail calls leave no frame: the paths show only the calls that will return.
#include "pm.h"

static char *pm;
static int odd(int n);
static int even(int n)
{
	PUT(int, pm + 4 * n, 2);
	return n == 0 ? 1 : odd(n - 1);
}
static int odd(int n)
{
	PUT(int, pm + 4 * n, 1);
	return n == 0 ? 0 : even(n - 1);
}
static int (*volatile chosen)(int) = even;
static int through(int n) { PUT(int, pm + 1024, n); return chosen(n); }

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	pm = pm_create(argv[1], 4096);
	CHECK(even(30) == 1);
	CHECK(through(7) == 0);
	return 0;
}
