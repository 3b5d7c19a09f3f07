//@ build: c
//@ cflags: -O1 -mclwb -pthread
//@ needs: clwb
// What the C library does when `main` has returned completes the flush: too late for whoever relied on it.
#include "pm.h"

int main(int argc, char **argv)
{
	uint64_t *slot = pm_create(argv[1]);
	PUT(slot[0], 1);
	_mm_clwb(slot); //~ FP0104
	return 0;
}
