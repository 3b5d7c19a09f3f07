//@ build: c
//@ cflags: -O1 -mclwb -pthread
//@ needs: clwb
// The counter's second value is persisted as well.
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
	PUT(h->count, 2);
	PERSIST(&h->count);
	return 0;
}
