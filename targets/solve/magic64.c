//@ explore: --bytes 16
/* A 64-bit magic number, big-endian. */
#include "solve.h"
int main(int argc, char **argv)
{
	struct pool *pool = pool_open(argv[1]);
	uint64_t word[2] = {0};
	input(word, sizeof word);
	if (__builtin_bswap64(word[1]) == 0x0123456789abcdefull) {
		PUT(pool->value[0], word[0]); //~ FP0101
		FLUSH_REPAIRED(pool->value[0]);
	}
	return argc - 2;
}
