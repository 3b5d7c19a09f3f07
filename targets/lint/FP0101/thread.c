//@ build: c
//@ cflags: -O1 -mclwb -pthread
//@ needs: clwb
// A thread stores to a line that the main thread flushed before, and nobody flushes it again.
#include "pm.h"

static void *worker(void *arg)
{
	uint64_t *slot = arg;
	PUT(slot[1], 2); //~ FP0101
	return NULL;
}

int main(int argc, char **argv)
{
	uint64_t *slot = pm_create(argv[1]);
	PUT(slot[0], 1);
	PERSIST(slot);
	pthread_t thread;
	CHECK(pthread_create(&thread, NULL, worker, slot) == 0);
	CHECK(pthread_join(thread, NULL) == 0);
	return 0;
}
