//@ build: c
//@ cflags: -O1 -mclwb -pthread
//@ needs: clwb
// One routine persists nodes wherever they are; some of them are in DRAM.
#include "pm.h"

struct node {
	uint64_t value;
	char pad[LINE - 8];
};

static void persist(struct node *n)
{
	_mm_clwb(n);
}

int main(int argc, char **argv)
{
	struct node *pm = pm_create(argv[1]);
	struct node *cached = aligned_alloc(LINE, sizeof *cached);
	PUT(pm->value, 1);
	PUT(cached->value, 1);
	persist(cached); //~ FP0202
	persist(pm);
	_mm_sfence();
	return 0;
}
