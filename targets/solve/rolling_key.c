//@ explore: --bytes 8
/* Bytes that are decoded with a key that rolls. */
#include "solve.h"
int main(int argc, char **argv)
{
	struct pool *pool = pool_open(argv[1]);
	unsigned char text[8] = {0};
	input(text, sizeof text);
	unsigned char key = 0x3d;
	for (int i = 0; i < 8; i++) {
		unsigned char plain = text[i] ^ key;
		key = (unsigned char)(key * 5 + text[i]);
		text[i] = plain;
	}
	if (memcmp(text, "PMEMPOOL", 8) == 0) {
		PUT(pool->value[0], key); //~ FP0101
		FLUSH_REPAIRED(pool->value[0]);
	}
	return argc - 2;
}
