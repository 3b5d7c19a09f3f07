//! A backup name of the pool is made by a hard link, and taken away when the change is complete.
//! variants: 1
//! run: {bin} {pool} run
//! recover: {bin} {pool} check
#include "files.h"

int main(int argc, char **argv)
{
	const char *busy = beside(argv[1], ".busy");
	if (is_run(argc, argv)) {
		uint64_t *p = pm_create(argv[1], POOL);
		for (uint64_t i = 1; i <= 3; i++) {
			if (link(argv[1], busy) != 0)
				return 3;
			PUT(p[0], i); //~ 1 atomicity
			PUT(p[8], i); //~ 1 atomicity
			flush(&p[0], 8);
#if !HAS_BUG(1)
			persist(&p[8], 8);
#endif
			if (unlink(busy) != 0)
				return 3;
			persist(&p[8], 8);
		}
		return 0;
	}
	uint64_t *p = pm_open(argv[1], POOL);
	if (p && !exists(busy))
		insist(p[0] == p[8], "the change is torn, and nobody was at it");
	return 0;
}
