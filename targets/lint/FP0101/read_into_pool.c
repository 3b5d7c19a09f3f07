//@ build: c
//@ cflags: -O1 -mclwb -pthread
//@ needs: clwb
// The kernel stores what read() brings, and it has to be flushed like any other store.
#include "pm.h"

int main(int argc, char **argv)
{
	char *pm = pm_create(argv[1]);
	PUT(pm[0], 1);
	PERSIST(pm);
	int fd = open("/proc/self/comm", O_RDONLY);
	CHECK(read(fd, pm + 8, 4) == 4); //~ FP0101
	return 0;
}
