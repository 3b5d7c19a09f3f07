//@ build: c
//@ cflags: -O1 -pthread
//@ compare: exact lengths
//@ pool: varies
// A mutex in PM holds its owner's thread id.
#include "pm.h"
#include <pthread.h>

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	char *pm = pm_create(argv[1], 4096);
	pthread_mutex_t *lock = (pthread_mutex_t *)pm;
	CHECK(pthread_mutex_init(lock, NULL) == 0);
	for (int i = 0; i < 3; i++) {
		CHECK(pthread_mutex_lock(lock) == 0);
		PUT(int, pm + 64, i);
		CHECK(pthread_mutex_unlock(lock) == 0);
		CHECK(pthread_mutex_trylock(lock) == 0 && pthread_mutex_trylock(lock) == EBUSY);
		CHECK(pthread_mutex_unlock(lock) == 0);
	}
	return 0;
}
