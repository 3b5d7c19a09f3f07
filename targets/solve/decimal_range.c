//@ explore: --bytes 8
/* A decimal number in a narrow range, read digit by digit up to the first other character. */
#include "solve.h"
int main(int argc, char **argv)
{
	struct pool *pool = pool_open(argv[1]);
	char line[9] = {0};
	input(line, 8);
	uint32_t number = 0;
	for (const char *at = line; *at >= '0' && *at <= '9'; at++)
		number = number * 10 + (uint32_t)(*at - '0');
	if (number >= 74123 && number <= 74125) {
		PUT(pool->value[0], number); //~ FP0101
		FLUSH_REPAIRED(pool->value[0]);
	}
	return argc - 2;
}
