//@ explore: --bytes 32
/* A key of 32 bytes, compared by memcmp. */
#include "solve.h"
int main(int argc, char **argv)
{
	struct pool *pool = pool_open(argv[1]);
	char key[32] = {0};
	input(key, sizeof key);
	if (memcmp(key, "correct horse battery staple 42!", 32) == 0) {
		PUT(pool->value[0], 1); //~ FP0101
		FLUSH_REPAIRED(pool->value[0]);
	}
	return argc - 2;
}
