//@ build: c
//@ cflags: -O1 -mclwb -pthread
//@ needs: clwb
// Nobody waits for the flush; the locked instruction of the mutex completes it by chance.
#include "pm.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Without a second thread the C library does without locked instructions. */
static void *wait_for_the_end(void *unused)
{
	for (;;)
		pause();
	return unused;
}

int main(int argc, char **argv)
{
	pthread_t other;
	CHECK(pthread_create(&other, NULL, wait_for_the_end, NULL) == 0);
	uint64_t *slot = pm_create(argv[1]);
	pthread_mutex_lock(&lock);
	PUT(slot[0], 1);
	_mm_clwb(slot); //~ FP0104
	pthread_mutex_unlock(&lock);
	_exit(0);
}
