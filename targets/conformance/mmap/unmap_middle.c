//@ build: c
//@ cflags: -O1
// A hole in the middle of a mapping, filled with anonymous memory; one munmap over several mappings.
#include "pm.h"

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	int fd = pm_file(argv[1], 40960);
	char *pm = pm_map(fd, 40960);
	CHECK(munmap(pm + 8192, 8192) == 0);
	PUT(int, pm + 8188, 1);
	PUT(int, pm + 16384, 2);
	char *hole = pm_map_at(pm + 8192, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	PUT(int, hole, 3);
	PUT(int, pm + 16388, 4);
	CHECK(munmap(pm + 4096, 16384) == 0);
	PUT(int, pm, 5);
	PUT(int, pm + 20480, 6);
	CHECK(munmap(pm, 40960) == 0);
	CHECK(msync(pm, 4096, MS_ASYNC) == -1 && errno == ENOMEM);
	return 0;
}
