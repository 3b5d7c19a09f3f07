//@ explore: --bytes 12
/* A date that is valid in leap years only. */
#include "solve.h"
static int digits(const char *p, int n)
{
	int value = 0;
	for (; n > 0; n--, p++) {
		if (*p < '0' || *p > '9')
			return -1;
		value = value * 10 + (*p - '0');
	}
	return value;
}

int main(int argc, char **argv)
{
	struct pool *pool = pool_open(argv[1]);
	char line[13] = {0};
	input(line, 12);
	int year = digits(line, 4), month = digits(line + 5, 2), day = digits(line + 8, 2);
	if (year < 2000 || year > 2100 || line[4] != '-' || line[7] != '-')
		return argc - 2;
	int leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
	if (month == 2 && day == 29 && leap) {
		PUT(pool->value[0], (uint64_t)year); //~ FP0101
		FLUSH_REPAIRED(pool->value[0]);
	}
	return argc - 2;
}
