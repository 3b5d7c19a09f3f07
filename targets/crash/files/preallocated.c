//! A log in a file of a fixed length (fallocate), written with pwrite; the pool says how many of its records count.
//! variants: 1
//! run: {bin} {pool} run
//! recover: {bin} {pool} check
#include "files.h"

#define RECORDS 4

static void append(int fd, uint64_t number)
{
	uint64_t record = 100 + number;
	if (pwrite(fd, &record, sizeof record, (off_t)(8 * number)) != sizeof record || fdatasync(fd) != 0)
		exit(3);
}

int main(int argc, char **argv)
{
	const char *log = beside(argv[1], ".log");
	if (is_run(argc, argv)) {
		int fd = open(log, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
		if (fd < 0 || fallocate(fd, 0, 0, 4096) != 0)
			return 3;
		uint64_t *p = pm_create(argv[1], POOL);
		for (uint64_t i = 0; i < RECORDS; i++) {
#if !HAS_BUG(1)
			append(fd, i);
#endif
			PUT(p[0], i + 1); //~ 1 atomicity
			persist(p, 8);
#if HAS_BUG(1)
			append(fd, i);
#endif
		}
		return 0;
	}
	uint64_t *p = pm_open(argv[1], POOL);
	int fd = open(log, O_RDONLY | O_CLOEXEC);
	struct stat st;
	if (!p || p[0] == 0)
		return 0;
	insist(fd >= 0 && fstat(fd, &st) == 0 && st.st_size == 4096, "the log has lost its length");
	for (uint64_t i = 0, record; i < p[0]; i++)
		insist(pread(fd, &record, 8, (off_t)(8 * i)) == 8 && record == 100 + i, "a record that counts is not there");
	return 0;
}
