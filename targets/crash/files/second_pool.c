//! A second pool is made when the first one is complete; recovery takes its being there for a sign of that.
//! variants: 1
//! run: {bin} {pool} run
//! recover: {bin} {pool} check
#include "files.h"

int main(int argc, char **argv)
{
	const char *second = beside(argv[1], ".2");
	if (is_run(argc, argv)) {
		uint64_t *p = pm_create(argv[1], POOL);
		PUT(p[0], 42); //~ 1 ordering
#if !HAS_BUG(1)
		persist(p, 8);
#endif
		uint64_t *q = pm_create(second, POOL);
		PUT(q[0], 1);
		persist(q, 8);
		persist(p, 8);
		return 0;
	}
	uint64_t *p = pm_open(argv[1], POOL);
	if (p && exists(second))
		insist(p[0] == 42, "there is a second pool, and the first one is not complete");
	return 0;
}
