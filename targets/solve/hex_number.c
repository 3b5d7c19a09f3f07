//@ explore: --bytes 16
/* A number in hexadecimal digits, parsed by hand. */
#include "solve.h"
int main(int argc, char **argv)
{
	struct pool *pool = pool_open(argv[1]);
	char line[17] = {0};
	input(line, 16);
	uint32_t number = 0;
	for (char *p = line; *p; p++) {
		if (*p >= '0' && *p <= '9')
			number = number << 4 | (uint32_t)(*p - '0');
		else if (*p >= 'a' && *p <= 'f')
			number = number << 4 | (uint32_t)(*p - 'a' + 10);
		else
			break;
	}
	if (number == 0xb16b00b5) {
		PUT(pool->value[0], number); //~ FP0101
		FLUSH_REPAIRED(pool->value[0]);
	}
	return argc - 2;
}
