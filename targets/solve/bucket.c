//@ explore: --bytes 8
/* Two different keys whose hashes fall into one bucket of 4096. */
#include "solve.h"
static uint32_t hash(uint32_t key)
{
	uint32_t h = 2166136261u;
	for (int i = 0; i < 4; i++, key >>= 8)
		h = (h ^ (key & 255)) * 16777619u;
	return h;
}

int main(int argc, char **argv)
{
	struct pool *pool = pool_open(argv[1]);
	uint32_t key[2] = {0};
	input(key, sizeof key);
	if (key[0] != key[1] && hash(key[0]) % 4096 == hash(key[1]) % 4096) {
		PUT(pool->value[0], key[1]); //~ FP0101
		FLUSH_REPAIRED(pool->value[0]);
	}
	return argc - 2;
}
