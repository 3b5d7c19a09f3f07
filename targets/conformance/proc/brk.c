//@ build: c
//@ cflags: -O1
// The program break: grows, shrinks, gives zeroed memory, and is contiguous with the heap.
#include "pm.h"

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	char *pm = pm_create(argv[1], 4096);
	char *start = sbrk(0);
	CHECK(sbrk(100000) == start && sbrk(0) == start + 100000);
	memset(start, 0x5a, 100000);
	CHECK(brk(start + 5000) == 0 && sbrk(0) == start + 5000);
	CHECK(sbrk(95000) == start + 5000);
	CHECK(start[99999] == 0 && start[4999] == 0x5a);
	PUT(int, pm, start[4999]);
	char *blocks[50];
	for (int i = 0; i < 50; i++)
		blocks[i] = malloc(1000 * i + 1);
	for (int i = 0; i < 50; i++)
		free(blocks[i]);
	PUT(int, pm + 4, 2);
	return 0;
}
