//@ build: c
//@ cflags: -O1
// A pool that has content before it is mapped: the initial content belongs to the trace.
#include "pm.h"

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	int fd = pm_file(argv[1], 32768);
	char page[4096];
	for (int i = 0; i < 4096; i++)
		page[i] = (char)(i * 13);
	CHECK(pwrite(fd, page, 4096, 4096) == 4096 && pwrite(fd, page, 4000, 20000) == 4000);
	char *pm = pm_map(fd, 32768);
	memmove(pm + 8192 + 3, pm + 4096, 200);
	PUT(int, pm + 20100, 5);
	PUT(int, pm + 4096, *(int *)(pm + 4100) + 1);
	return 0;
}
