//@ build: c
//@ cflags: -O1
//@ pool: varies
// /dev/urandom and /dev/random, read into memory and straight into PM, whole and in pieces.
#include "pm.h"

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	char *pm = pm_create(argv[1], 4096);
	char bytes[24];
	int fd = open("/dev/urandom", O_RDONLY);
	CHECK(fd >= 0 && read(fd, bytes, sizeof bytes) == sizeof bytes);
	memcpy(pm, bytes, sizeof bytes);
	CHECK(read(fd, pm + 64, 5) == 5 && read(fd, pm + 69, 11) == 11);
	int other = open("/dev/random", O_RDONLY);
	CHECK(other >= 0 && read(other, pm + 128, 16) == 16);
	return 0;
}
