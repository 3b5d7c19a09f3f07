//@ build: c
//@ cflags: -O1 -pthread
//@ compare: exact thread-events-float
// Threads that hand the turn to each other through pipes: a deterministic order over four threads.
#include "pm.h"
#include <pthread.h>

static char *pm;
static int pipes[5][2];
static long next;

static void *work(void *arg)
{
	long id = (long)arg;
	char token;
	for (int round = 0; round < 3; round++) {
		CHECK(read(pipes[id][0], &token, 1) == 1);
		PUT(long, pm + 8 * next, id * 100 + round);
		next++;
		pm_persist(pm + 8 * next);
		CHECK(write(pipes[(id + 1) % 4][1], &token, 1) == 1);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	pm = pm_create(argv[1], 4096);
	pthread_t t[4];
	for (int i = 0; i < 4; i++)
		CHECK(pipe(pipes[i]) == 0);
	for (long i = 0; i < 4; i++)
		CHECK(pthread_create(&t[i], NULL, work, (void *)i) == 0);
	CHECK(write(pipes[0][1], "x", 1) == 1);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	CHECK(next == 12);
	return 0;
}
