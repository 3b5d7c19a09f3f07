//@ build: c
//@ cflags: -O1 -mclwb -pthread
//@ needs: clwb
// A locked instruction of the program itself, but after `main`.
#include "pm.h"

static int users = 1;

__attribute__((destructor)) static void last(void)
{
	__atomic_fetch_sub(&users, 1, __ATOMIC_ACQ_REL);
}

int main(int argc, char **argv)
{
	uint64_t *slot = pm_create(argv[1]);
	PUT(slot[0], 1);
	_mm_clwb(slot); //~ FP0104
	return 0;
}
