//@ build: c
//@ cflags: -O1 -mclwb -pthread
//@ needs: clwb
// The fence stands before the unmapping.
#include "pm.h"

int main(int argc, char **argv)
{
	uint64_t *slot = pm_create(argv[1]);
	for (int i = 0; i < 8; i++)
		PUT(slot[i], i);
	_mm_clwb(slot);
	_mm_sfence();
	munmap(slot, POOL_SIZE);
	_exit(0);
}
