//@ build: c
//@ cflags: -O1 -mclwb -pthread
//@ needs: clwb
// A lock in PM is volatile by design: whoever opens the pool initialises it.
#include "pm.h"

struct pool {
	pthread_mutex_t lock;
	char pad[LINE];
	uint64_t count;
};

int main(int argc, char **argv)
{
	struct pool *pool = pm_create(argv[1]);
	CHECK(pthread_mutex_init(&pool->lock, NULL) == 0);
	for (int i = 0; i < 5; i++) {
		pthread_mutex_lock(&pool->lock);
		PUT(pool->count, i);
		PERSIST(&pool->count);
		pthread_mutex_unlock(&pool->lock);
	}
	return 0;
}
