//@ build: c
//@ cflags: -O1 -pthread
//@ compare: unordered
// Two threads add to one counter in PM with lock xadd: the recorded old and new values form one chain.
#include "pm.h"
#include <pthread.h>

static char *pm;

static void *work(void *arg)
{
	(void)arg;
	for (int i = 0; i < 200; i++)
		__atomic_fetch_add((long *)pm, 1, __ATOMIC_SEQ_CST);
	return NULL;
}

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	pm = pm_create(argv[1], 4096);
	pthread_t a, b;
	CHECK(pthread_create(&a, NULL, work, NULL) == 0);
	CHECK(pthread_create(&b, NULL, work, NULL) == 0);
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	CHECK(*(long *)pm == 400);
	return 0;
}
