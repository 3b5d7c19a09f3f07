//@ build: c
//@ cflags: -O1
//@ args: --pm *.pool --pm set/*
// Several pools at once, one a directory of part files, beside a file that no glob names and is no pool.
#include "pm.h"

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	char *a = pm_create(argv[1], 8192), *b = pm_create("b.pool", 8192), *other = pm_create("other.dat", 8192);
	CHECK(mkdir("set", 0755) == 0 || errno == EEXIST);
	char *p = pm_create("set/part0", 8192), *q = pm_create("set/part1", 8192);
	for (int i = 0; i < 3; i++) {
		char *all[] = { a, other, b, q, p };
		for (int k = 0; k < 5; k++)
			PUT(int, all[k] + 8 * i, 10 * i + k);
		memcpy(b + 4096, a, 64);
		pm_persist(a);
	}
	return 0;
}
