//@ build: c
//@ cflags: -O1 -mclwb -pthread
//@ needs: clwb
//@ args: --strict-fences
// Each thread fences its own flushes.
#include "pm.h"

static void *worker(void *arg)
{
	uint64_t *slot = arg;
	PUT(slot[0], 1);
	_mm_clwb(slot);
	_mm_sfence();
	return NULL;
}

int main(int argc, char **argv)
{
	uint64_t *slot = pm_create(argv[1]);
	PUT(slot[LINE / 8], 1);
	_mm_clwb(&slot[LINE / 8]);
	pthread_t thread;
	CHECK(pthread_create(&thread, NULL, worker, slot) == 0);
	CHECK(pthread_join(thread, NULL) == 0);
	_mm_sfence();
	return 0;
}
