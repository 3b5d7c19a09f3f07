//@ build: c
//@ cflags: -O1 -mclwb -pthread
//@ needs: clwb
// The caller persists what the callee stored, before it unmaps the pool.
#include "pm.h"

struct record {
	uint64_t key;
	uint64_t value;
};

static void update(struct record *r, uint64_t value)
{
	PUT(r->value, value);
}

int main(int argc, char **argv)
{
	struct record *r = pm_create(argv[1]);
	PUT(r->key, 7);
	PERSIST(r);
	update(r, 42);
	PERSIST(r);
	munmap(r, POOL_SIZE);
	return 0;
}
