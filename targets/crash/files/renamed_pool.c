//! A pool that is made under a temporary name and renamed into place; then a value and a flag that says so.
//! variants: 2
//! run: {bin} {pool} run
//! recover: {bin} {pool} check
#include "files.h"

int main(int argc, char **argv)
{
	const char *made = beside(argv[1], ".tmp");
	if (is_run(argc, argv)) {
		uint64_t *p = pm_create(made, POOL);
		PUT(p[0], 7); //~ 2 ordering
#if !HAS_BUG(2)
		persist(p, 8);
#endif
		if (rename(made, argv[1]) != 0)
			return 3;
#if HAS_BUG(2)
		persist(p, 8);
#endif
		PUT(p[24], 42); //~ 1 ordering
#if !HAS_BUG(1)
		persist(&p[24], 8);
#endif
		PUT(p[16], 1);
		flush(&p[24], 8);
		persist(&p[16], 8);
		return 0;
	}
	if (!exists(argv[1]))
		return 0;
	uint64_t *p = pm_open(argv[1], POOL);
	insist(p != NULL, "the pool has its name before it has its size");
	insist(p[0] == 7, "the pool has its name before it is complete");
	insist(p[16] != 1 || p[24] == 42, "valid without data");
	return 0;
}
