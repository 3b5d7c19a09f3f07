//@ explore: --bytes 12
/* The last two bytes are the sum of the others, and the sum is large. */
#include "solve.h"
int main(int argc, char **argv)
{
	struct pool *pool = pool_open(argv[1]);
	unsigned char record[12] = {0};
	input(record, sizeof record);
	unsigned sum = 0;
	for (int i = 0; i < 10; i++)
		sum += record[i] * (i + 1u);
	if (sum > 9000 && sum == (record[10] | (unsigned)record[11] << 8)) {
		PUT(pool->value[0], sum); //~ FP0101
		FLUSH_REPAIRED(pool->value[0]);
	}
	return argc - 2;
}
