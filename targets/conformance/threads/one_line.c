//@ build: c
//@ cflags: -O1 -pthread
//@ compare: unordered
//@ pool: varies
// Two threads write the same words without a lock. Whatever order memory saw, replaying the events must give the final pool.
#include "pm.h"
#include <pthread.h>

static char *pm;
static volatile int go;

static void *work(void *arg)
{
	while (!go)
		__builtin_ia32_pause();
	for (long i = 0; i < 300; i++)
		PUT(long, pm + 8 * (i % 5), (long)arg * 1000000 + i);
	return NULL;
}

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	pm = pm_create(argv[1], 4096);
	pthread_t a, b;
	CHECK(pthread_create(&a, NULL, work, (void *)1) == 0);
	CHECK(pthread_create(&b, NULL, work, (void *)2) == 0);
	go = 1;
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	PUT(long, pm + 64, 1);
	return 0;
}
