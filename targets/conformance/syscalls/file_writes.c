//@ build: c
//@ cflags: -O1
// Writes to the file of a mapped pool: write, pwrite, writev, pwritev, O_APPEND, a second descriptor, data that comes from PM itself.
#include "pm.h"
#include <sys/uio.h>

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	int fd = pm_file(argv[1], 16384);
	char *pm = pm_map(fd, 16384), text[5000];
	memset(text, 'q', sizeof text);
	PUT(int, pm, 0x11111111);
	CHECK(write(fd, "start", 5) == 5 && memcmp(pm, "start", 5) == 0);
	CHECK(write(fd, "more", 4) == 4);
	CHECK(pwrite(fd, text, sizeof text, 4000) == sizeof text);
	PUT(int, pm + 4096, 7);
	struct iovec v[] = { { "ab", 2 }, { pm, 9 }, { "yz", 2 } };
	CHECK(pwritev(fd, v, 3, 10000) == 13 && memcmp(pm + 10000, "abstartmoreyz", 13) == 0);
	CHECK(lseek(fd, 12000, SEEK_SET) == 12000 && writev(fd, v, 3) == 13);
	int other = open(argv[1], O_WRONLY | O_APPEND);
	CHECK(other >= 0 && write(other, "tail", 4) == 4);
	CHECK(lseek(other, 0, SEEK_CUR) == 16388);
	CHECK(pwrite(fd, "x", 1, -5) == -1 && errno == EINVAL);
	int dup_fd = dup(fd);
	CHECK(pwrite(dup_fd, "dup", 3, 50) == 3 && memcmp(pm + 50, "dup", 3) == 0);
	PUT(int, pm + 60, 1);
	return 0;
}
