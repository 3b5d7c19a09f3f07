//@ build: c
//@ cflags: -O1 -mclwb -pthread
//@ needs: clwb
// The store that was lost is the first one; the one after it stores the same value, and hides nothing.
#include "pm.h"

struct header {
	uint64_t magic;
	uint64_t count;
};

int main(int argc, char **argv)
{
	struct header *h = pm_create(argv[1]);
	PUT(h->magic, 0x706f6f6c);
	PUT(h->count, 1);
	PERSIST(h);
	PUT(h->count, 2); //~ FP0101
	PUT(h->count, 2);
	return 0;
}
