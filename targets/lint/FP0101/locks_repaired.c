//@ build: c
//@ cflags: -O1 -mclwb -pthread
//@ needs: clwb
//@ rules: FP01 FP03
// Locks of every kind are volatile by design, also where their lines are flushed, and whichever inner function of the C library stores
// into them. The test runs this with a C library whose inner functions have no names, too.
#include "pm.h"
#include <errno.h>
#include <sched.h>
#include <semaphore.h>
#include <time.h>

enum { NORMAL, RECURSIVE, ERRORCHECK, ADAPTIVE, ROBUST, INHERIT, KINDS };

struct pool {
	pthread_mutex_t mutex[KINDS];
	pthread_rwlock_t rwlock;
	pthread_cond_t cond;
	pthread_barrier_t barrier;
	pthread_spinlock_t spin;
	sem_t sem;
	uint64_t data __attribute__((aligned(LINE)));
};

static struct pool *pool;
static int ready; /* under mutex[NORMAL] */

/* As if something beside the lock were made durable. */
#define FLUSH(object)                                                                              \
	do {                                                                                       \
		for (char *at = (char *)&(object); at < (char *)(&(object) + 1); at += LINE)       \
			_mm_clwb(at);                                                              \
		_mm_sfence();                                                                      \
	} while (0)

static void init(int kind)
{
	pthread_mutexattr_t attr;
	CHECK(pthread_mutexattr_init(&attr) == 0);
	CHECK(pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED) == 0);
	switch (kind) {
	case RECURSIVE: CHECK(pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE) == 0); break;
	case ERRORCHECK: CHECK(pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ERRORCHECK) == 0); break;
	case ADAPTIVE: CHECK(pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ADAPTIVE_NP) == 0); break;
	case ROBUST: CHECK(pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST) == 0); break;
	case INHERIT: CHECK(pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT) == 0); break;
	}
	CHECK(pthread_mutex_init(&pool->mutex[kind], &attr) == 0);
	FLUSH(pool->mutex[kind]);
}

static void *worker(void *unused)
{
	for (int kind = 0; kind < KINDS; kind++) {
		CHECK(pthread_mutex_lock(&pool->mutex[kind]) == 0);
		CHECK(pthread_mutex_unlock(&pool->mutex[kind]) == 0);
	}
	CHECK(pthread_mutex_lock(&pool->mutex[NORMAL]) == 0);
	while (!ready)
		CHECK(pthread_cond_wait(&pool->cond, &pool->mutex[NORMAL]) == 0);
	CHECK(pthread_mutex_unlock(&pool->mutex[NORMAL]) == 0);
	pthread_barrier_wait(&pool->barrier);
	return unused;
}

int main(int argc, char **argv)
{
	const struct timespec past = {0};
	pool = pm_create(argv[1]);
	CHECK(pthread_rwlock_init(&pool->rwlock, NULL) == 0);
	CHECK(pthread_cond_init(&pool->cond, NULL) == 0);
	CHECK(pthread_barrier_init(&pool->barrier, NULL, 2) == 0);
	CHECK(pthread_spin_init(&pool->spin, PTHREAD_PROCESS_SHARED) == 0);
	CHECK(sem_init(&pool->sem, 1, 1) == 0);
	FLUSH(*pool);

	for (int kind = 0; kind < KINDS; kind++) {
		pthread_mutex_t *mutex = &pool->mutex[kind];
		init(kind);
		CHECK(pthread_mutex_lock(mutex) == 0);
		CHECK(pthread_mutex_unlock(mutex) == 0);
		CHECK(pthread_mutex_trylock(mutex) == 0);
		CHECK(pthread_mutex_unlock(mutex) == 0);
		CHECK(pthread_mutex_timedlock(mutex, &past) == 0);
		CHECK(pthread_cond_timedwait(&pool->cond, mutex, &past) == ETIMEDOUT);
		CHECK(pthread_mutex_unlock(mutex) == 0);
	}

	CHECK(pthread_rwlock_rdlock(&pool->rwlock) == 0);
	CHECK(pthread_rwlock_timedwrlock(&pool->rwlock, &past) == ETIMEDOUT);
	CHECK(pthread_rwlock_unlock(&pool->rwlock) == 0);
	CHECK(pthread_rwlock_wrlock(&pool->rwlock) == 0);
	CHECK(pthread_rwlock_timedrdlock(&pool->rwlock, &past) == EDEADLK);
	CHECK(pthread_rwlock_unlock(&pool->rwlock) == 0);
	CHECK(pthread_rwlock_tryrdlock(&pool->rwlock) == 0);

	CHECK(pthread_spin_lock(&pool->spin) == 0);
	CHECK(pthread_spin_unlock(&pool->spin) == 0);
	CHECK(pthread_spin_trylock(&pool->spin) == 0);

	CHECK(sem_wait(&pool->sem) == 0);
	CHECK(sem_timedwait(&pool->sem, &past) == -1);
	CHECK(sem_post(&pool->sem) == 0);
	CHECK(sem_trywait(&pool->sem) == 0);
	CHECK(sem_post(&pool->sem) == 0);
	CHECK(sem_post(&pool->sem) == 0);

	for (int kind = 0; kind < KINDS; kind++)
		CHECK(pthread_mutex_lock(&pool->mutex[kind]) == 0);
	pthread_t thread;
	CHECK(pthread_create(&thread, NULL, worker, NULL) == 0);
	/* Time for the other thread to wait, which is another path through the C library. */
	for (int i = 0; i < 20; i++)
		sched_yield();
	for (int kind = KINDS - 1; kind >= 0; kind--)
		CHECK(pthread_mutex_unlock(&pool->mutex[kind]) == 0);
	CHECK(pthread_mutex_lock(&pool->mutex[NORMAL]) == 0);
	ready = 1;
	CHECK(pthread_cond_broadcast(&pool->cond) == 0);
	CHECK(pthread_mutex_unlock(&pool->mutex[NORMAL]) == 0);
	pthread_barrier_wait(&pool->barrier);
	CHECK(pthread_join(thread, NULL) == 0);

	PUT(pool->data, 1);
	PERSIST(&pool->data);
	return 0;
}
