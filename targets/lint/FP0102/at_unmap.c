//@ build: c
//@ cflags: -O1 -mclwb -pthread
//@ needs: clwb
// The pool is unmapped while a flush is not yet complete, and no fence follows.
#include "pm.h"

int main(int argc, char **argv)
{
	uint64_t *slot = pm_create(argv[1]);
	for (int i = 0; i < 8; i++)
		PUT(slot[i], i);
	_mm_clwb(slot); //~ FP0102
	munmap(slot, POOL_SIZE);
	_exit(0);
}
