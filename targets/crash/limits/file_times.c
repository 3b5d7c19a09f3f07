//! A file whose time says that the pool is complete: times of files are not part of a crash state.
//! variants: 1
//! run: {bin} {pool} run
//! recover: {bin} {pool} check
//! missed: times of files are not restored
#include "files.h"

#define COMPLETE 1000

int main(int argc, char **argv)
{
	const char *mark = beside(argv[1], ".mark");
	if (is_run(argc, argv)) {
		struct timespec times[2] = { { COMPLETE, 0 }, { COMPLETE, 0 } };
		uint64_t *p = pm_create(argv[1], POOL);
		write_number(mark, 1);
		PUT(p[0], 42); //~ 1 ordering
#if !HAS_BUG(1)
		persist(p, 8);
#endif
		if (utimensat(AT_FDCWD, mark, times, 0) != 0)
			return 3;
		persist(p, 8);
		return 0;
	}
	uint64_t *p = pm_open(argv[1], POOL);
	struct stat st;
	if (p && stat(mark, &st) == 0 && st.st_mtime == COMPLETE)
		insist(p[0] == 42, "complete without its data");
	return 0;
}
