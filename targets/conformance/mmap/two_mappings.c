//@ build: c
//@ cflags: -O1
// One file mapped twice, once more at another offset: events are places in the pool, never addresses.
#include "pm.h"

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	int fd = pm_file(argv[1], 16384);
	char *a = pm_map(fd, 16384), *b = pm_map(fd, 16384);
	char *c = pm_map_at(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 8192);
	CHECK(a != b);
	for (int i = 0; i < 4; i++) {
		PUT(int, a + 16 * i, i);
		PUT(int, b + 16 * i + 4, i);
		PUT(int, c + 16 * i, i);
		CHECK(*(int *)(b + 16 * i) == i && *(int *)(a + 8192 + 16 * i) == i);
	}
	int again = open(argv[1], O_RDWR);
	char *d = pm_map(again, 16384);
	PUT(int, d + 64, 5);
	pm_persist(d + 64);
	CHECK(munmap(a, 16384) == 0);
	PUT(int, b + 128, 6);
	CHECK(*(int *)(d + 128) == 6);
	return 0;
}
