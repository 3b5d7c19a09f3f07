//@ explore: --bytes 8
/* A word with exactly 29 bits set, the lowest of them the ninth. */
#include "solve.h"
int main(int argc, char **argv)
{
	struct pool *pool = pool_open(argv[1]);
	uint64_t word = 0;
	input(&word, sizeof word);
	if (word != 0 && __builtin_ctzll(word) == 9 && __builtin_popcountll(word) == 29) {
		PUT(pool->value[0], word); //~ FP0101
		FLUSH_REPAIRED(pool->value[0]);
	}
	return argc - 2;
}
