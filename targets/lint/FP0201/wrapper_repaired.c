//@ build: c
//@ cflags: -O1 -mclwb -pthread
//@ needs: clwb
// Every call has something to write back.
#include "pm.h"

static void flush(void *p)
{
	_mm_clwb(p);
}

static void fence(void)
{
	_mm_sfence();
}

__attribute__((noinline)) static void persist(void *p)
{
	flush(p);
	fence();
}

int main(int argc, char **argv)
{
	uint64_t *slot = pm_create(argv[1]);
	PUT(slot[0], 1);
	persist(slot);
	PUT(slot[8], 1);
	persist(slot + 8);
	return 0;
}
