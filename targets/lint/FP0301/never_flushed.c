//@ build: c
//@ cflags: -O1 -mclwb -pthread
//@ needs: clwb
// A scratch buffer in the pool that nobody ever flushes.
#include "pm.h"

struct pool {
	uint64_t root;
	char pad[LINE - 8];
	uint64_t scratch[8];
};

int main(int argc, char **argv)
{
	struct pool *pool = pm_create(argv[1]);
	PUT(pool->root, 1);
	PERSIST(&pool->root);
	for (int i = 0; i < 8; i++)
		PUT(pool->scratch[i], i); //~ FP0301
	return 0;
}
