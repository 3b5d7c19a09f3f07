//@ build: c
//@ cflags: -O1 -pthread
//@ compare: exact lengths
// A read-write lock and a semaphore that lie in PM, as PMDK keeps them; used without contention. The lock holds its writer's
// thread id meanwhile.
#include "pm.h"
#include <pthread.h>
#include <semaphore.h>

struct root { pthread_rwlock_t rw; sem_t sem; long value; };

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	struct root *r = (struct root *)pm_create(argv[1], 4096);
	CHECK(pthread_rwlock_init(&r->rw, NULL) == 0);
	CHECK(sem_init(&r->sem, 1, 2) == 0);
	for (int i = 0; i < 3; i++) {
		CHECK(pthread_rwlock_wrlock(&r->rw) == 0);
		PUT(long, &r->value, i);
		CHECK(pthread_rwlock_unlock(&r->rw) == 0);
		CHECK(sem_wait(&r->sem) == 0 && sem_post(&r->sem) == 0);
	}
	return 0;
}
