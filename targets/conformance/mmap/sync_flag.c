//@ build: c
//@ cflags: -O1
// MAP_SYNC is refused by file systems without DAX, and the program falls back, as libpmem does.
#include "pm.h"

#ifndef MAP_SHARED_VALIDATE
#define MAP_SHARED_VALIDATE 3
#endif
#ifndef MAP_SYNC
#define MAP_SYNC 0x80000
#endif

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	int fd = pm_file(argv[1], 8192);
	char *pm = (char *)mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED_VALIDATE | MAP_SYNC, fd, 0);
	if (pm == MAP_FAILED) {
		CHECK(errno == EOPNOTSUPP);
		pm = pm_map_at(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED_VALIDATE, fd, 0);
	}
	PUT(int, pm + 100, 1);
	pm_persist(pm + 100);
	char *populated = pm_map_at(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
	PUT(int, populated + 200, 2);
	CHECK(mmap(NULL, 0, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED && errno == EINVAL);
	CHECK(mmap(NULL, 4096, PROT_READ, MAP_SHARED, 999, 0) == MAP_FAILED && errno == EBADF);
	return 0;
}
