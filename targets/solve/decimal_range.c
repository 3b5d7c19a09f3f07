//@ explore: --bytes 16
/* A decimal number in a narrow range, read by strtol. */
#include "solve.h"
int main(int argc, char **argv)
{
	struct pool *pool = pool_open(argv[1]);
	char line[17] = {0};
	input(line, 16);
	long number = strtol(line, NULL, 10);
	if (number > 730000 && number < 730020) {
		PUT(pool->value[0], (uint64_t)number); //~ FP0101
		FLUSH_REPAIRED(pool->value[0]);
	}
	return argc - 2;
}
