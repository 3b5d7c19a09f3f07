//@ build: c
//@ cflags: -O1
// A private mapping of the pool's file is not PM: what is written there stays in the process.
#include "pm.h"

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	int fd = pm_file(argv[1], 8192);
	char *pm = pm_map(fd, 8192);
	char *own = pm_map_at(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	for (int i = 0; i < 3; i++) {
		PUT(int, own + 4 * i, 100 + i);
		PUT(int, pm + 4 * i, i);
		__atomic_fetch_add((int *)(own + 64), 1, __ATOMIC_SEQ_CST);
		pm_persist(own + 4 * i);
	}
	CHECK(*(int *)own == 100 && *(int *)pm == 0 && *(int *)(pm + 8) == 2);
	CHECK(read(fd, own + 4096, 64) == 64);
	return 0;
}
