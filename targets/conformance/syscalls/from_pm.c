//@ build: c
//@ cflags: -O1
// The kernel reads from PM: paths, write buffers, argument structures in PM. No event comes of it.
#include "pm.h"
#include <time.h>

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	char *pm = pm_create(argv[1], 4096);
	strcpy(pm, "made-from-pm.dat");
	int fd = open(pm, O_RDWR | O_CREAT | O_TRUNC, 0600);
	CHECK(fd >= 0);
	for (int i = 0; i < 26; i++)
		PUT(char, pm + 100 + i, 'a' + i);
	CHECK(write(fd, pm + 100, 26) == 26);
	char back[26];
	CHECK(pread(fd, back, 26, 0) == 26 && memcmp(back, pm + 100, 26) == 0);
	PUT(long, pm + 256, 0);
	PUT(long, pm + 264, 1000);
	CHECK(nanosleep((struct timespec *)(pm + 256), NULL) == 0);
	CHECK(access(pm, R_OK) == 0 && unlink(pm) == 0);
	return 0;
}
