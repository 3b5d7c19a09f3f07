//! A pool that grows: first the file, then the count of its pages. Recovery relies on the file being that long.
//! variants: 1
//! run: {bin} {pool} run
//! recover: {bin} {pool} check
#include "files.h"

int main(int argc, char **argv)
{
	if (is_run(argc, argv)) {
		int fd = open(argv[1], O_RDWR | O_CREAT | O_CLOEXEC, 0644);
		if (fd < 0 || ftruncate(fd, 4096) != 0)
			return 3;
		uint64_t *p = mmap(NULL, 8 * 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		for (uint64_t pages = 2; pages <= 4; pages++) {
#if HAS_BUG(1)
			PUT(p[0], pages); //~ 1 atomicity
			persist(p, 8);
#endif
			if (ftruncate(fd, (off_t)(4096 * pages)) != 0)
				return 3;
#if !HAS_BUG(1)
			PUT(p[0], pages);
			persist(p, 8);
#endif
		}
		return 0;
	}
	int fd = open(argv[1], O_RDWR | O_CLOEXEC);
	struct stat st;
	if (fd < 0 || fstat(fd, &st) != 0 || st.st_size < 4096)
		return 0;
	uint64_t *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	insist((uint64_t)st.st_size >= 4096 * p[0], "the pool counts pages that its file has not");
	return 0;
}
