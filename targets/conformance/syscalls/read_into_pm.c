//@ build: c
//@ cflags: -O1
// The kernel writes into PM: read, pread, readv, preadv, short reads, reads over a page border, reads that fail.
#include "pm.h"
#include <sys/uio.h>

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	char *pm = pm_create(argv[1], 65536), text[6000], dram[16];
	for (int i = 0; i < 6000; i++)
		text[i] = (char)('a' + i % 26);
	int fd = pm_file("input.dat", 0);
	CHECK(write(fd, text, sizeof text) == sizeof text && lseek(fd, 0, SEEK_SET) == 0);
	CHECK(read(fd, pm + 10, 100) == 100 && pm[10] == 'a');
	CHECK(pread(fd, pm + 4090, 20, 26) == 20 && pm[4090] == 'a');
	CHECK(lseek(fd, 0, SEEK_SET) == 0);
	CHECK(read(fd, pm + 8192 + 5, 6000) == 6000);
	CHECK(read(fd, pm + 20000, 10) == 0);
	CHECK(pread(fd, pm + 20000, 100, 5990) == 10);
	struct iovec v[] = { { pm + 16384, 7 }, { dram, sizeof dram }, { pm + 16400, 0 }, { pm + 24574, 9 } };
	CHECK(preadv(fd, v, 4, 3) == 32 && pm[16384] == 'd');
	CHECK(lseek(fd, 5990, SEEK_SET) == 5990 && readv(fd, v, 4) == 10);
	CHECK(read(-1, pm, 10) == -1 && errno == EBADF);
	int ends[2];
	CHECK(pipe(ends) == 0 && write(ends[1], "through a pipe", 14) == 14);
	CHECK(read(ends[0], pm + 30000, 4096) == 14);
	PUT(char, pm + 30014, '.');
	return 0;
}
