/* For a fuzzer with a fork server: each run begins without the pool that the run before it has left. Constructors run after the fork. */
#include <stdlib.h>
#include <unistd.h>

__attribute__((constructor(60000))) static void remove_pool(void)
{
	const char *pool = getenv("FRESH_POOL");
	if (pool)
		unlink(pool);
}
