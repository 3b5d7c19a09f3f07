//! Writes to the pool's file that are durable when they return: O_DSYNC, O_SYNC, RWF_DSYNC, RWF_SYNC, syncfs, sync. sync_file_range is not.
//! variants: 1
//! run: {bin} {pool} run
//! recover: {bin} {pool} check
#include "files.h"
#include <sys/uio.h>

#define WAYS 6

static void put(int fd, int way, uint64_t value, off_t at)
{
	struct iovec one = { &value, sizeof value };
	int flags = way == 2 ? RWF_DSYNC : way == 3 ? RWF_SYNC : 0;
	if (pwritev2(fd, &one, 1, at, flags) != sizeof value) //~ 1 ordering
		exit(3);
#if HAS_BUG(1)
	if (way == 4) {
		sync_file_range(fd, at, sizeof value, SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
		return;
	}
#endif
	if (way == 4)
		syncfs(fd);
	if (way == 5)
		sync();
}

int main(int argc, char **argv)
{
	if (is_run(argc, argv)) {
		pm_create(argv[1], POOL);
		for (int way = 0; way < WAYS; way++) {
			int fd = open(argv[1], O_RDWR | (way == 0 ? O_DSYNC : way == 1 ? O_SYNC : 0));
			put(fd, way, 42, way * 128);
			put(fd, way, 1, way * 128 + 64);
			fsync(fd);
			close(fd);
		}
		return 0;
	}
	uint64_t *p = pm_open(argv[1], POOL);
	for (int way = 0; p && way < WAYS; way++)
		insist(p[16 * way + 8] != 1 || p[16 * way] == 42, "valid without data");
	return 0;
}
