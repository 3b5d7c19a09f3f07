//@ build: c
//@ cflags: -O1 -mclwb -pthread
//@ needs: clwb
// A locked instruction of the program itself is a fence like another.
#include "pm.h"

static int lock;

int main(int argc, char **argv)
{
	uint64_t *slot = pm_create(argv[1]);
	PUT(slot[0], 1);
	_mm_clwb(slot);
	__atomic_exchange_n(&lock, 1, __ATOMIC_ACQ_REL);
	return 0;
}
