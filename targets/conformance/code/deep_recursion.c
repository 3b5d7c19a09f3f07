//@ build: c
//@ cflags: -O0
// Call paths hundreds of frames deep, with stores on the way down and up.
#include "pm.h"

static char *pm;

static int down(int n)
{
	volatile char room[n % 64 + 1];
	room[0] = (char)n;
	if (n % 50 == 0)
		PUT(int, pm + 4 * n, n);
	int r = n == 0 ? 0 : down(n - 1) + 1;
	if (n % 70 == 0)
		PUT(int, pm + 4096 + 4 * n, r + room[0] * 0);
	return r;
}

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	pm = pm_create(argv[1], 16384);
	CHECK(down(700) == 700);
	return 0;
}
