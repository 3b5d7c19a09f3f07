//@ build: c
//@ cflags: -O1 -mclwb -pthread
//@ needs: clwb
//@ args: --strict-fences
// The thread flushes and ends, the main thread fences: a fence completes only its own thread's flushes. (Without
// --strict-fences the locked instructions with which the thread ends are fences, and nothing is lost.)
#include "pm.h"

static void *worker(void *arg)
{
	uint64_t *slot = arg;
	PUT(slot[0], 1);
	_mm_clwb(slot); //~ FP0102
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
