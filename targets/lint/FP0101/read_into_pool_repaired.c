//@ build: c
//@ cflags: -O1 -mclwb -pthread
//@ needs: clwb
// What read() brought is persisted.
#include "pm.h"

int main(int argc, char **argv)
{
	char *pm = pm_create(argv[1]);
	PUT(pm[0], 1);
	PERSIST(pm);
	int fd = open("/proc/self/comm", O_RDONLY);
	CHECK(read(fd, pm + 8, 4) == 4);
	PERSIST(pm);
	return 0;
}
