//@ explore: --bytes 8
/* The same as decimal_range, but the C library reads the number: it looks characters up in tables. */
#include "solve.h"
int main(int argc, char **argv)
{
	struct pool *pool = pool_open(argv[1]);
	char line[9] = {0};
	input(line, 8);
	long number = strtol(line, NULL, 10);
	if (number >= 74123 && number <= 74125) {
		PUT(pool->value[0], number); //~ FP0101
		FLUSH_REPAIRED(pool->value[0]);
	}
	return argc - 2;
}
