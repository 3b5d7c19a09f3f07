//@ build: c
//@ cflags: -O1
// longjmp over several frames, forwards in a loop and out of a qsort comparator in the C library.
#include "pm.h"
#include <setjmp.h>

static char *pm;
static jmp_buf out;
static volatile int next;

static void __attribute__((noinline)) deep(int n)
{
	PUT(int, pm + 4 * next++, n);
	if (n == 0)
		longjmp(out, 5);
	deep(n - 1);
	PUT(int, pm + 4092, n);
}

static int compare(const void *a, const void *b)
{
	(void)a, (void)b;
	PUT(int, pm + 4 * next++, 50);
	if (next % 4 == 0)
		longjmp(out, 6);
	return 1;
}

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	pm = pm_create(argv[1], 4096);
	for (volatile int i = 0; i < 5; i++) {
		int how = setjmp(out);
		if (how == 0)
			deep(i + 2);
		CHECK(how == 5);
		PUT(int, pm + 4 * next++, 100 + i);
	}
	int numbers[9] = { 9, 8, 7, 6, 5, 4, 3, 2, 1 };
	if (setjmp(out) == 0)
		qsort(numbers, 9, sizeof *numbers, compare);
	else
		PUT(int, pm + 4 * next++, 200);
	return 0;
}
