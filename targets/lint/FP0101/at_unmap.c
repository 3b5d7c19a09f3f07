//@ build: c
//@ cflags: -O1 -mclwb -pthread
//@ needs: clwb
// What is unflushed when the pool is unmapped stays so: no later code of the program can flush it.
#include "pm.h"

struct record {
	uint64_t key;
	uint64_t value;
};

static void update(struct record *r, uint64_t value)
{
	PUT(r->value, value); //~ FP0101
}

int main(int argc, char **argv)
{
	struct record *r = pm_create(argv[1]);
	PUT(r->key, 7);
	PERSIST(r);
	update(r, 42);
	munmap(r, POOL_SIZE);
	return 0;
}
