//@ explore: --bytes 16
/* Digits with a check digit (Luhn) and a given prefix. */
#include "solve.h"
int main(int argc, char **argv)
{
	struct pool *pool = pool_open(argv[1]);
	char line[17] = {0};
	input(line, 16);
	int sum = 0;
	for (int i = 0; i < 10; i++) {
		if (line[i] < '0' || line[i] > '9')
			return argc - 2;
		int digit = line[i] - '0';
		if (i % 2 == 0)
			digit = digit > 4 ? digit * 2 - 9 : digit * 2;
		sum += digit;
	}
	if (sum % 10 == 0 && strncmp(line, "4917", 4) == 0 && sum > 50) {
		PUT(pool->value[0], (uint64_t)sum); //~ FP0101
		FLUSH_REPAIRED(pool->value[0]);
	}
	return argc - 2;
}
