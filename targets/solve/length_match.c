//@ explore: --bytes 24
/* A length that must be that of the text behind it, and a terminator in its place. */
#include "solve.h"
int main(int argc, char **argv)
{
	struct pool *pool = pool_open(argv[1]);
	char record[25] = {0};
	input(record, 24);
	size_t len = (unsigned char)record[0];
	if (len > 12 && len < 20 && strlen(record + 1) == len) {
		PUT(pool->value[0], len); //~ FP0101
		FLUSH_REPAIRED(pool->value[0]);
	}
	return argc - 2;
}
