//@ explore: --bytes 8
/* A hash of eight bytes with a given value. */
#include "solve.h"
int main(int argc, char **argv)
{
	struct pool *pool = pool_open(argv[1]);
	uint64_t h = 0;
	input(&h, sizeof h);
	h ^= 0x9e3779b97f4a7c15ull;
	h *= 0xbf58476d1ce4e5b9ull;
	h = h << 27 | h >> 37;
	h += 0x94d049bb133111ebull;
	if (h == 0x1122334455667788ull) {
		PUT(pool->value[0], h); //~ FP0101
		FLUSH_REPAIRED(pool->value[0]);
	}
	return argc - 2;
}
