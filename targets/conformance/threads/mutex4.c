//@ build: c
//@ cflags: -O1 -pthread
//@ compare: unordered
// Four threads under one mutex: each adds to a shared counter and fills its own slots, flushed and fenced inside.
#include "pm.h"
#include <pthread.h>

static char *pm;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *work(void *arg)
{
	long id = (long)arg;
	for (int i = 0; i < 25; i++) {
		pthread_mutex_lock(&lock);
		PUT(long, pm, *(long *)pm + 1);
		PUT(long, pm + 4096 * (id + 1) + 8 * i, id * 1000 + i);
		pm_persist(pm + 4096 * (id + 1) + 8 * i);
		pthread_mutex_unlock(&lock);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	pm = pm_create(argv[1], 65536);
	pthread_t t[4];
	for (long i = 0; i < 4; i++)
		CHECK(pthread_create(&t[i], NULL, work, (void *)i) == 0);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	CHECK(*(long *)pm == 100);
	return 0;
}
