//@ build: c
//@ cflags: -O1 -mclwb -pthread
//@ needs: clwb
// The first one has completed everything. It is no sfence: it may order loads.
#include "pm.h"

int main(int argc, char **argv)
{
	uint64_t *slot = pm_create(argv[1]);
	PUT(slot[0], 1);
	_mm_clwb(slot);
	_mm_mfence();
	_mm_mfence(); //~ FP0205
	return 0;
}
