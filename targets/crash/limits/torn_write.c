//! One write of several sectors may be cut by a crash; recovery believes that it is there whole, or checks that it is.
//! variants: 1
//! run: {bin} {pool} run
//! recover: {bin} {pool} check
//! missed: one write call is there whole or not at all
#include "files.h"

#define RECORD 4096

int main(int argc, char **argv)
{
	const char *log = beside(argv[1], ".log");
	char record[RECORD];
	if (is_run(argc, argv)) {
		uint64_t *p = pm_create(argv[1], POOL);
		int fd = open(log, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
		memset(record, 7, sizeof record);
		if (write(fd, record, sizeof record) != sizeof record || fsync(fd) != 0) //~ 1 atomicity
			return 3;
		PUT(p[0], 1);
		persist(p, 8);
		return 0;
	}
	uint64_t *p = pm_open(argv[1], POOL);
	int fd = open(log, O_RDONLY | O_CLOEXEC);
	ssize_t len = fd < 0 ? 0 : read(fd, record, sizeof record);
	if (!p || len <= 0)
		return 0;
#if HAS_BUG(1)
	insist(len == RECORD && record[0] == 7 && record[RECORD - 1] == 7, "half a record");
#else
	insist(p[0] == 0 || len == RECORD, "half a record that counts");
#endif
	return 0;
}
