//@ explore: --bytes 12
/* Two fields that must be related. */
#include "solve.h"
int main(int argc, char **argv)
{
	struct pool *pool = pool_open(argv[1]);
	uint32_t field[3] = {0};
	input(field, sizeof field);
	if (field[0] > 1000 && field[1] == field[0] * 3 + 7 && (field[2] ^ field[1]) == 0x00c0ffee) {
		PUT(pool->value[0], field[0]); //~ FP0101
		FLUSH_REPAIRED(pool->value[0]);
	}
	return argc - 2;
}
