//@ build: c
//@ cflags: -O1 -mclwb -pthread
//@ needs: clwb
// A statistics counter that is only counted; unmapped and mapped anew it goes on being counted.
#include "pm.h"

static void hit(uint64_t *counter)
{
	PUT(*counter, *counter + 1); //~ FP0301
}

int main(int argc, char **argv)
{
	uint64_t *pool = pm_create(argv[1]);
	PUT(pool[LINE / 8], 1);
	PERSIST(&pool[LINE / 8]);
	hit(&pool[0]);
	munmap(pool, POOL_SIZE);
	return 0;
}
