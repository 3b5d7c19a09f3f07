//@ build: c
//@ cflags: -O1 -mclwb -pthread
//@ needs: clwb
// Nobody waits for the flush; the locked instruction of the mutex completes it by chance.
#include "pm.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

int main(int argc, char **argv)
{
	uint64_t *slot = pm_create(argv[1]);
	pthread_mutex_lock(&lock);
	PUT(slot[0], 1);
	_mm_clwb(slot); //~ FP0104
	pthread_mutex_unlock(&lock);
	_exit(0);
}
