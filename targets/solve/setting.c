//@ explore: --bytes 24
/* A setting by its name, and a value in a range. */
#include "solve.h"
int main(int argc, char **argv)
{
	struct pool *pool = pool_open(argv[1]);
	char line[25] = {0};
	input(line, 24);
	char *equals = strchr(line, '=');
	if (!equals)
		return argc - 2;
	*equals = 0;
	int value = atoi(equals + 1);
	if (strcmp(line, "max_depth") == 0 && value >= 37 && value <= 38) {
		PUT(pool->value[0], (uint64_t)value); //~ FP0101
		FLUSH_REPAIRED(pool->value[0]);
	}
	return argc - 2;
}
