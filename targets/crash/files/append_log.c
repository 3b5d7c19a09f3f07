//! A log beside the pool, written with O_APPEND: a line is there only if the pool has what it says.
//! variants: 1
//! run: {bin} {pool} run
//! recover: {bin} {pool} check
#include "files.h"

int main(int argc, char **argv)
{
	const char *log = beside(argv[1], ".log");
	if (is_run(argc, argv)) {
		uint64_t *p = pm_create(argv[1], POOL);
		int fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
		for (int i = 0; i < 4; i++) {
			PUT(p[8 * i], 100 + i); //~ 1 ordering
#if !HAS_BUG(1)
			persist(&p[8 * i], 8);
#endif
			if (write(fd, "x", 1) != 1 || fdatasync(fd) != 0)
				return 3;
			persist(&p[8 * i], 8);
		}
		return 0;
	}
	uint64_t *p = pm_open(argv[1], POOL);
	struct stat st;
	if (!p || stat(log, &st) != 0)
		return 0;
	for (int i = 0; i < st.st_size; i++)
		insist(p[8 * i] == (uint64_t)(100 + i), "the log has an entry that the pool has not");
	return 0;
}
