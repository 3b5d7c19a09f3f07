//@ build: c
//@ cflags: -O1
//@ compare: lengths
//@ pool: varies
// /proc/sys/kernel/random/uuid, which libpmemobj names its pools by: another one at every open, and the same in every run.
#include "pm.h"

static void put_uuid(char *to)
{
	int fd = open("/proc/sys/kernel/random/uuid", O_RDONLY);
	CHECK(fd >= 0 && read(fd, to, 37) == 37);
	CHECK(to[8] == '-' && to[13] == '-' && to[14] == '4' && to[36] == '\n');
	CHECK(read(fd, to + 40, 1) == 0 && close(fd) == 0);
}

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	char *pm = pm_create(argv[1], 4096);
	put_uuid(pm);
	put_uuid(pm + 64);
	CHECK(memcmp(pm, pm + 64, 36) != 0);
	return 0;
}
