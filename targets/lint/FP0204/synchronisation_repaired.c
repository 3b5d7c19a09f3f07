//@ build: c
//@ cflags: -O1 -mclwb -pthread
//@ needs: clwb
// A locked instruction is not there for its fence: a lock in DRAM, and a counter in PM that threads share.
#include "pm.h"

static int lock;

int main(int argc, char **argv)
{
	uint64_t *slot = pm_create(argv[1]);
	while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE))
		;
	__atomic_fetch_add(slot, 1, __ATOMIC_SEQ_CST);
	PERSIST(slot);
	__atomic_fetch_add(slot, 1, __ATOMIC_SEQ_CST);
	PERSIST(slot);
	__atomic_exchange_n(&lock, 0, __ATOMIC_RELEASE);
	return 0;
}
