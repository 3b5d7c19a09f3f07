//@ build: c
//@ cflags: -O1
//@ args: --pm *.pool
// A pool that is unlinked while mapped stays a pool; a new file of the same name is another one; a renamed one is the same.
#include "pm.h"

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	char *old = pm_create(argv[1], 4096);
	PUT(int, old, 1);
	CHECK(unlink(argv[1]) == 0);
	PUT(int, old + 8, 2);
	char *fresh = pm_create(argv[1], 4096);
	PUT(int, fresh, 3);
	PUT(int, old + 16, 4);
	CHECK(*(int *)(fresh + 8) == 0);
	CHECK(rename(argv[1], "renamed.pool") == 0);
	PUT(int, fresh + 24, 5);
	int fd = open("renamed.pool", O_RDWR);
	CHECK(fd >= 0);
	char *again = pm_map(fd, 4096);
	PUT(int, again + 32, 6);
	CHECK(*(int *)(fresh + 32) == 6);
	return 0;
}
