//@ build: c
//@ cflags: -O1
// msync of parts and of the whole, synchronous and not; fsync and fdatasync of a pool and of another file.
#include "pm.h"

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	int fd = pm_file(argv[1], 16384), other = pm_file("other.dat", 10);
	char *pm = pm_map(fd, 16384);
	PUT(int, pm + 5000, 1);
	CHECK(msync(pm + 4096, 4096, MS_SYNC) == 0);
	PUT(int, pm + 9000, 2);
	CHECK(msync(pm, 16384, MS_ASYNC) == 0);
	CHECK(msync(pm + 8192, 100, MS_SYNC | MS_INVALIDATE) == 0);
	CHECK(msync(pm + 1, 10, MS_SYNC) == -1 && errno == EINVAL);
	PUT(int, pm, 3);
	CHECK(fsync(fd) == 0);
	PUT(int, pm, 4);
	CHECK(fdatasync(fd) == 0 && fsync(other) == 0);
	CHECK(fsync(-1) == -1 && errno == EBADF);
	CHECK(sync_file_range(fd, 0, 4096, SYNC_FILE_RANGE_WRITE) == 0);
	PUT(int, pm, 5);
	return 0;
}
