//@ explore: --bytes 8
/* Signed numbers around zero whose product is given. */
#include "solve.h"
int main(int argc, char **argv)
{
	struct pool *pool = pool_open(argv[1]);
	int16_t n[4] = {0};
	input(n, sizeof n);
	if (n[0] < -100 && n[0] > -200 && n[1] > 0 && n[1] < 200 && n[0] * n[1] == -14443) {
		PUT(pool->value[0], (uint64_t)n[0]); //~ FP0101
		FLUSH_REPAIRED(pool->value[0]);
	}
	return argc - 2;
}
