//@ explore: --bytes 16
/* A command word of eight letters. */
#include "solve.h"
int main(int argc, char **argv)
{
	struct pool *pool = pool_open(argv[1]);
	char line[17] = {0};
	input(line, 16);
	char *end = strchr(line, ' ');
	if (end)
		*end = 0;
	if (strcmp(line, "snapshot") == 0) {
		PUT(pool->value[0], 1); //~ FP0101
		FLUSH_REPAIRED(pool->value[0]);
	}
	return argc - 2;
}
