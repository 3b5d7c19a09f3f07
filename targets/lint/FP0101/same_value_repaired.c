//@ build: c
//@ cflags: -O1 -mclwb -pthread
//@ needs: clwb
// Stores of what is there already (pages are touched so that they exist) need no flush, and neither does an atomic
// instruction that fails.
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
	volatile uint64_t *count = &h->count;
	*count = *count;
	uint64_t expected = 7;
	__atomic_compare_exchange_n(&h->count, &expected, 8, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	volatile char *other = (volatile char *)h + 4096;
	*other = *other;
	return 0;
}
