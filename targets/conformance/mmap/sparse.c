//@ build: c
//@ cflags: -O1
// A sparse pool of 8 GiB, touched in three places: its size costs nothing.
#include "pm.h"

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	size_t len = 8ul << 30;
	char *pm = pm_create(argv[1], len);
	PUT(long, pm + 5, 1);
	PUT(long, pm + len / 2, 2);
	PUT(long, pm + len - 8, 3);
	pm_persist(pm + len - 8);
	return 0;
}
