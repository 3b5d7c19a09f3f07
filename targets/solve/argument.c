//@ explore:
//@ command: mode={mode:sym:6} {level:sym:4}
/* Arguments: a word, and a number. */
#include "solve.h"
int main(int argc, char **argv)
{
	struct pool *pool = pool_open(argv[1]);
	if (argc > 3 && strcmp(argv[2], "mode=repair") == 0 && atoi(argv[3]) == 404) {
		PUT(pool->value[0], 404); //~ FP0101
		FLUSH_REPAIRED(pool->value[0]);
	}
	return 0;
}
