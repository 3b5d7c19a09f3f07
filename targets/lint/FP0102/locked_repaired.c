//@ build: c
//@ cflags: -O1 -mclwb -pthread
//@ needs: clwb
// A locked instruction completes flushes, on ordinary memory too.
#include "pm.h"

static int lock;

int main(int argc, char **argv)
{
	uint64_t *slot = pm_create(argv[1]);
	PUT(slot[0], 1);
	_mm_clwb(slot);
	__atomic_fetch_add(&lock, 1, __ATOMIC_SEQ_CST);
	_exit(0);
}
