//@ build: c
//@ cflags: -O1
// mprotect of a pool to none and back, of a part of it, and of a read-only mapping to writable.
#include "pm.h"

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	int fd = pm_file(argv[1], 16384);
	char *pm = pm_map(fd, 16384);
	PUT(int, pm, 1);
	CHECK(mprotect(pm, 16384, PROT_NONE) == 0);
	CHECK(mprotect(pm, 16384, PROT_READ | PROT_WRITE) == 0);
	PUT(int, pm + 4, 2);
	CHECK(mprotect(pm + 4096, 4096, PROT_READ) == 0);
	PUT(int, pm + 8192, 3);
	CHECK(mprotect(pm + 4096, 4096, PROT_READ | PROT_WRITE) == 0);
	PUT(int, pm + 4096, 4);
	char *view = pm_map_at(NULL, 16384, PROT_READ, MAP_SHARED, fd, 0);
	CHECK(*(int *)view == 1);
	CHECK(mprotect(view, 8192, PROT_READ | PROT_WRITE) == 0);
	PUT(int, view + 4100, 5);
	PUT(int, pm + 12288, 6);
	pm_persist(view);
	int only = open(argv[1], O_RDONLY);
	CHECK(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, only, 0) == MAP_FAILED && errno == EACCES);
	char *reader = pm_map_at(NULL, 4096, PROT_READ, MAP_SHARED, only, 0);
	CHECK(mprotect(reader, 4096, PROT_READ | PROT_WRITE) == -1 && errno == EACCES);
	PUT(int, pm + 16, *(int *)reader);
	return 0;
}
