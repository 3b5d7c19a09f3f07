//@ build: c
//@ cflags: -O1 -mclwb -pthread
//@ needs: clwb
// msync makes stores durable as well as a flush and a fence do.
#include "pm.h"

int main(int argc, char **argv)
{
	uint64_t *slot = pm_create(argv[1]);
	PUT(slot[0], 1);
	PERSIST(slot);
	PUT(slot[1], 2);
	CHECK(msync(slot, POOL_SIZE, MS_SYNC) == 0);
	return 0;
}
