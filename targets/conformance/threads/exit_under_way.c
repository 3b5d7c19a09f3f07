//@ build: c
//@ cflags: -O1 -pthread
//@ compare: exact thread-events-float
// The process ends by exit() while one thread spins and another sleeps in the kernel.
#include "pm.h"
#include <pthread.h>

static char *pm;
static int ready[2];

static void *spin(void *arg)
{
	CHECK(write(ready[1], "s", 1) == 1);
	for (volatile long i = 0;; i++)
		;
	return arg;
}

static void *sleeper(void *arg)
{
	CHECK(write(ready[1], "p", 1) == 1);
	for (;;)
		pause();
	return arg;
}

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	pm = pm_create(argv[1], 4096);
	CHECK(pipe(ready) == 0);
	pthread_t a, b;
	char token;
	CHECK(pthread_create(&a, NULL, spin, NULL) == 0);
	CHECK(read(ready[0], &token, 1) == 1);
	CHECK(pthread_create(&b, NULL, sleeper, NULL) == 0);
	CHECK(read(ready[0], &token, 1) == 1);
	PUT(int, pm, 42);
	pm_persist(pm);
	return 0;
}
