//@ explore: --symbolic {a:sym:6} --symbolic {b:sym:6} --symbolic {c:sym:6}
/* A state that three operations in a row must build up, each depending on the one before. */
#include "solve.h"
int main(int argc, char **argv)
{
	struct pool *pool = pool_open(argv[1]);
	char line[64];
	unsigned token = 0, state = 0;
	while (fgets(line, sizeof line, stdin)) {
		unsigned char argument = (unsigned char)line[4];
		if (memcmp(line, "open", 4) == 0 && state == 0) {
			token = argument * 7u;
			state = 1;
		} else if (memcmp(line, "arm:", 4) == 0 && state == 1 && argument == (unsigned char)(token + 3)) {
			token += argument;
			state = 2;
		} else if (memcmp(line, "fire", 4) == 0 && state == 2 && argument == (unsigned char)(token ^ 0x55)) {
			PUT(pool->value[0], token); //~ FP0101
			FLUSH_REPAIRED(pool->value[0]);
			state = 3;
		}
	}
	return argc - 2;
}
