//@ build: c
//@ cflags: -O1
// mremap: grow, shrink, move to a chosen address, and a second view of the same pages (old length 0).
#include "pm.h"

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	int fd = pm_file(argv[1], 65536);
	char *room = pm_map_at(NULL, 1 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *pm = pm_map(fd, 8192);
	PUT(int, pm, 1);
	pm = mremap(pm, 8192, 32768, MREMAP_MAYMOVE);
	CHECK(pm != MAP_FAILED && *(int *)pm == 1);
	PUT(int, pm + 20000, 2);
	char *old = pm;
	pm = mremap(pm, 32768, 32768, MREMAP_MAYMOVE | MREMAP_FIXED, room + 65536);
	CHECK(pm == room + 65536 && old != pm);
	PUT(int, pm + 24000, 3);
	CHECK(mremap(pm, 32768, 4096, 0) == pm);
	PUT(int, pm + 4000, 4);
	char *second = mremap(pm, 0, 4096, MREMAP_MAYMOVE);
	CHECK(second != MAP_FAILED && second != pm);
	PUT(int, second + 8, 5);
	PUT(int, pm + 12, 6);
	CHECK(*(int *)(pm + 8) == 5);
	PUT(int, pm + 16, 7);
	/* Moving a part out of the middle leaves a hole and keeps the offsets. */
	char *whole = pm_map(fd, 32768);
	char *part = mremap(whole + 8192, 4096, 4096, MREMAP_MAYMOVE | MREMAP_FIXED, room);
	CHECK(part == room);
	PUT(int, part + 4, 8);
	PUT(int, whole + 4, 9);
	PUT(int, whole + 12288, 10);
	return 0;
}
