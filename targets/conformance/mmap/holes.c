//@ build: c
//@ cflags: -O1
// Ranges that become zero: punch-hole and zero-range by fallocate, MADV_REMOVE through the mapping.
#include "pm.h"

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	int fd = pm_file(argv[1], 65536);
	char *pm = pm_map(fd, 65536);
	for (int i = 0; i < 16; i++)
		PUT(long, pm + 4096 * i + 8, 0x1111111111111111 * (i % 8));
	if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 4100, 9000) == 0)
		CHECK(*(long *)(pm + 8192 + 8) == 0 && *(long *)(pm + 12288 + 8) == 0);
	PUT(long, pm + 8192, 7);
	if (fallocate(fd, FALLOC_FL_ZERO_RANGE, 20480, 4096) == 0)
		CHECK(*(long *)(pm + 20480 + 8) == 0);
	PUT(long, pm + 20480, 8);
	if (madvise(pm + 28672, 8192, MADV_REMOVE) == 0)
		CHECK(*(long *)(pm + 28672 + 8) == 0);
	PUT(long, pm + 32768, 9);
	CHECK(madvise(pm, 4096, MADV_DONTNEED) == 0);
	PUT(long, pm, 10);
	return 0;
}
