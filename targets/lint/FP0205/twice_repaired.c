//@ build: c
//@ cflags: -O1 -mclwb -pthread
//@ needs: clwb
// One is enough.
#include "pm.h"

int main(int argc, char **argv)
{
	uint64_t *slot = pm_create(argv[1]);
	PUT(slot[0], 1);
	_mm_clwb(slot);
	_mm_mfence();
	return 0;
}
