//! A lock file with its owner's mark; recovery takes the lock, which nobody holds after a crash.
//! variants: 1
//! run: {bin} {pool} run
//! recover: {bin} {pool} check
#include "files.h"
#include <sys/file.h>

int main(int argc, char **argv)
{
	const char *lock = beside(argv[1], ".lock");
	int fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) != 0)
		broken("somebody holds the lock");
	if (is_run(argc, argv)) {
		if (write(fd, "run", 3) != 3)
			return 3;
		uint64_t *p = pm_create(argv[1], POOL);
		PUT(p[0], 42); //~ 1 ordering
#if !HAS_BUG(1)
		persist(p, 8);
#endif
		PUT(p[8], 1);
		flush(p, 8);
		persist(&p[8], 8);
		return ftruncate(fd, 0);
	}
	struct stat st;
	if (fstat(fd, &st) != 0)
		return 3;
	uint64_t *p = pm_open(argv[1], POOL);
	if (p && st.st_size > 0)
		insist(p[8] != 1 || p[0] == 42, "valid without data");
	return ftruncate(fd, 0);
}
