//@ build: c
//@ cflags: -O1 -mclwb -pthread
//@ needs: clwb
//@ rules: FP01
// The mutex comes first, but the program fences by itself: once for two flushes.
#include "pm.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

int main(int argc, char **argv)
{
	uint64_t *slot = pm_create(argv[1]);
	PUT(slot[0], 1);
	_mm_clwb(slot);
	pthread_mutex_lock(&lock);
	PUT(slot[8], 1);
	_mm_clwb(slot + 8);
	pthread_mutex_unlock(&lock);
	_mm_sfence();
	return 0;
}
