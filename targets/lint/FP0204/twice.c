//@ build: c
//@ cflags: -O1 -mclwb -pthread
//@ needs: clwb
// The callee has fenced already.
#include "pm.h"

static void persist(uint64_t *p)
{
	_mm_clwb(p);
	_mm_sfence();
}

int main(int argc, char **argv)
{
	uint64_t *slot = pm_create(argv[1]);
	PUT(slot[0], 1);
	persist(slot);
	_mm_sfence(); //~ FP0204
	return 0;
}
