//@ build: c
//@ cflags: -O1 -pthread
// Threads one after another, each joined before the next starts; thread-local storage, return values, pthread_exit.
#include "pm.h"
#include <pthread.h>

static char *pm;
static __thread long mine = 5;

static void leave(void *arg) { PUT(long, pm + 512, (long)arg); }

static void *work(void *arg)
{
	long id = (long)arg;
	mine += id;
	PUT(long, pm + 8 * id, mine);
	pm_persist(pm + 8 * id);
	pthread_cleanup_push(leave, arg);
	if (id % 2)
		pthread_exit((void *)(id * 10));
	pthread_cleanup_pop(1);
	return (void *)(id * 10);
}

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	pm = pm_create(argv[1], 4096);
	for (long i = 0; i < 6; i++) {
		pthread_t t;
		void *result;
		CHECK(pthread_create(&t, NULL, work, (void *)i) == 0);
		CHECK(pthread_join(t, &result) == 0 && result == (void *)(i * 10));
		PUT(long, pm + 1024, i);
	}
	CHECK(mine == 5);
	return 0;
}
