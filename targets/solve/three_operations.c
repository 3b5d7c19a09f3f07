//@ explore: --bytes 24
/* A state that needs three operations, each dependent on the one before: open a slot, arm it with a token made of its number, fire with a
 * token made of both. */
#include "solve.h"
int main(int argc, char **argv)
{
	struct pool *pool = pool_open(argv[1]);
	struct operation {
		uint32_t code, number;
	} operation[3] = {0};
	size_t count = input(operation, sizeof operation) / sizeof operation[0];
	uint32_t slot = 0, token = 0;
	enum { IDLE, OPEN, ARMED } state = IDLE;
	for (size_t n = 0; n < count; n++) {
		struct operation o = operation[n];
		if (o.code == 0x6f70656e && o.number > 1000) {
			slot = o.number;
			state = OPEN;
		} else if (o.code == 0x61726d21 && state == OPEN && o.number == (slot ^ 0x5a5a5a5a)) {
			token = o.number + slot;
			state = ARMED;
		} else if (o.code == 0x66697265 && state == ARMED && o.number == token * 7) {
			PUT(pool->value[0], token); //~ FP0101
			FLUSH_REPAIRED(pool->value[0]);
		}
	}
	return argc - 2;
}
