//@ explore: --bytes 24
/* A record inside a record, both with tag and length. */
#include "solve.h"
int main(int argc, char **argv)
{
	struct pool *pool = pool_open(argv[1]);
	unsigned char data[24] = {0};
	size_t len = input(data, sizeof data), at = 0;
	while (at + 2 <= len) {
		unsigned tag = data[at], size = data[at + 1];
		if (at + 2 + size > len || size == 0)
			break;
		if (tag == 0x30 && size >= 6 && data[at + 2] == 0x02 && data[at + 3] == 4) {
			uint32_t number;
			memcpy(&number, data + at + 4, 4);
			if (number == 0x00c0de42) {
				PUT(pool->value[0], number); //~ FP0101
				FLUSH_REPAIRED(pool->value[0]);
			}
		}
		at += 2 + size;
	}
	return argc - 2;
}
