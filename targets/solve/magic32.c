//@ explore: --bytes 16
/* A 32-bit magic number. */
#include "solve.h"
int main(int argc, char **argv)
{
	struct pool *pool = pool_open(argv[1]);
	uint32_t word[4] = {0};
	input(word, sizeof word);
	if (word[1] == 0x5ca1ab1e) {
		PUT(pool->value[0], word[2]); //~ FP0101
		FLUSH_REPAIRED(pool->value[0]);
	}
	return argc - 2;
}
