//@ build: c
//@ cflags: -O1
//@ args: --pm *.pool
// A pool that grows and shrinks while it is mapped: ftruncate, fallocate, posix_fallocate, a write past the end.
#include "pm.h"

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	int fd = pm_file(argv[1], 4096);
	char *pm = pm_map(fd, 65536);
	PUT(int, pm, 1);
	CHECK(ftruncate(fd, 16384) == 0);
	PUT(int, pm + 12288, 2);
	CHECK(fallocate(fd, 0, 16384, 8192) == 0);
	PUT(int, pm + 20480, 3);
	CHECK(fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, 65536) == 0);
	CHECK(posix_fallocate(fd, 0, 28672) == 0);
	PUT(int, pm + 28668, 4);
	CHECK(pwrite(fd, "tail", 4, 40000) == 4);
	CHECK(pm[40003] == 'l');
	PUT(int, pm + 36000, 5);
	CHECK(ftruncate(fd, 10000) == 0);
	CHECK(ftruncate(fd, 20000) == 0);
	CHECK(*(int *)(pm + 12288) == 0);
	PUT(int, pm + 12288, 6);
	CHECK(truncate(argv[1], 30000) == 0);
	PUT(int, pm + 29000, 7);
	return 0;
}
