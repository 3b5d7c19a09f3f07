//@ build: c
//@ cflags: -O1
// MAP_FIXED into an own reservation, one page over another, anonymous memory over PM and PM over it again.
#include "pm.h"

#define RW (PROT_READ | PROT_WRITE)

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	int fd = pm_file(argv[1], 16384);
	char *room = pm_map_at(NULL, 1 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	char *pm = room + 65536;
	CHECK(pm_map_at(pm, 16384, RW, MAP_SHARED | MAP_FIXED, fd, 0) == pm);
	PUT(int, pm, 1);
	PUT(int, pm + 4096, 2);
	CHECK(pm_map_at(pm + 4096, 4096, RW, MAP_SHARED | MAP_FIXED, fd, 12288) == pm + 4096);
	PUT(int, pm + 4096, 3);
	CHECK(pm_map_at(pm, 4096, RW, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == pm);
	PUT(int, pm, 4);
	PUT(int, pm + 4100, 5);
	CHECK(pm_map_at(pm, 4096, RW, MAP_SHARED | MAP_FIXED, fd, 0) == pm);
	CHECK(*(int *)pm == 1);
	PUT(int, pm, 6);
	CHECK(mmap(pm, 4096, RW, MAP_SHARED | MAP_FIXED_NOREPLACE, fd, 0) == MAP_FAILED && errno == EEXIST);
	PUT(int, pm + 8192, 7);
	return 0;
}
