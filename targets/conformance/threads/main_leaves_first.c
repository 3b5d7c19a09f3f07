//@ build: c
//@ cflags: -O1 -pthread
//@ compare: exact thread-events-float
// The main thread ends by pthread_exit; the last thread's end is the end of the process.
#include "pm.h"
#include <pthread.h>

static char *pm;
static pthread_t first;

static void *work(void *arg)
{
	CHECK(pthread_join(first, NULL) == 0);
	PUT(int, pm + 8, 7);
	pm_persist(pm + 8);
	return arg;
}

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	pm = pm_create(argv[1], 4096);
	first = pthread_self();
	pthread_t t;
	PUT(int, pm, 1);
	CHECK(pthread_create(&t, NULL, work, NULL) == 0);
	pthread_exit(NULL);
}
