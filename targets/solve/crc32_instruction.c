//@ explore: --bytes 12
/* A CRC-32C by the processor's instruction. */
#include "solve.h"
__attribute__((target("sse4.2"))) int main(int argc, char **argv)
{
	struct pool *pool = pool_open(argv[1]);
	uint32_t word[3] = {0};
	input(word, sizeof word);
	uint32_t crc = _mm_crc32_u32(_mm_crc32_u32(~0u, word[0]), word[1]);
	if (crc == word[2]) {
		PUT(pool->value[0], crc); //~ FP0101
		FLUSH_REPAIRED(pool->value[0]);
	}
	return argc - 2;
}
