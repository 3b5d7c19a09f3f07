//@ build: c
//@ cflags: -O1 -mclwb -pthread
//@ needs: clwb
// The second flush finds a line to which nothing was stored since the first.
#include "pm.h"

int main(int argc, char **argv)
{
	uint64_t *slot = pm_create(argv[1]);
	PUT(slot[0], 1);
	_mm_clwb(slot);
	_mm_clwb(slot); //~ FP0201
	_mm_sfence();
	return 0;
}
