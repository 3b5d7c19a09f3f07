//@ build: c
//@ cflags: -O1 -mclwb -pthread
//@ needs: clwb
// The flush stands in the program's own persist(), which most calls use as they should: who called it for nothing is to blame.
#include "pm.h"

static void flush(void *p)
{
	_mm_clwb(p);
}

static void fence(void)
{
	_mm_sfence();
}

__attribute__((noinline)) static void persist(void *p)
{
	flush(p);
	fence();
}

int main(int argc, char **argv)
{
	uint64_t *slot = pm_create(argv[1]);
	PUT(slot[0], 1);
	persist(slot);
	PUT(slot[8], 1);
	persist(slot + 8);
	persist(slot); //~ FP0201
	PUT(slot[16], 1);
	persist(slot + 16);
	persist(slot + 8); //~ FP0201
	return 0;
}
