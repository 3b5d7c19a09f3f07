//@ build: c
//@ cflags: -O1
//@ args: --loads
// One pool under mappings with different rights: read-only before it is a pool and after, none at first, and writable.
#include "pm.h"

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	int fd = pm_file(argv[1], 16384), reader = open(argv[1], O_RDONLY);
	CHECK(reader >= 0);
	volatile int *early = (int *)pm_map_at(NULL, 16384, PROT_READ, MAP_SHARED, reader, 0);
	CHECK(early[5] == 0);
	volatile int *both = (int *)pm_map(fd, 16384);
	volatile int *late = (int *)pm_map_at(NULL, 4096, PROT_READ, MAP_SHARED, reader, 4096);
	char *none = pm_map_at(NULL, 4096, PROT_NONE, MAP_SHARED, fd, 8192);
	for (int i = 0; i < 4; i++) {
		both[i] = i;
		both[1024 + i] = 10 + i;
		CHECK(early[i] == i && late[i] == 10 + i && early[1024 + i] == 10 + i);
	}
	CHECK(mprotect(none, 4096, PROT_READ | PROT_WRITE) == 0);
	PUT(int, none, 7);
	CHECK(early[2048] == 7 && both[2048] == 7);
	CHECK(mprotect((void *)early, 4096, PROT_READ | PROT_WRITE) == -1 && errno == EACCES);
	CHECK(mprotect((void *)both, 4096, PROT_READ) == 0 && both[2] == 2);
	CHECK(munmap((void *)both, 16384) == 0 && early[3] == 3);
	PUT(int, none + 4, 8);
	CHECK(early[2049] == 8);
	return 0;
}
