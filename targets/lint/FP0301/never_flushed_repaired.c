//@ build: c
//@ cflags: -O1 -mclwb -pthread
//@ needs: clwb
// Scratch space is in DRAM.
#include "pm.h"

struct pool {
	uint64_t root;
};

static uint64_t scratch[8];

int main(int argc, char **argv)
{
	struct pool *pool = pm_create(argv[1]);
	PUT(pool->root, 1);
	PERSIST(&pool->root);
	for (int i = 0; i < 8; i++)
		PUT(scratch[i], i);
	return 0;
}
