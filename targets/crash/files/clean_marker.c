//! A file that is there only after a clean shutdown: recovery looks at the pool only without it.
//! variants: 1
//! run: {bin} {pool} run
//! recover: {bin} {pool} check
#include "files.h"

int main(int argc, char **argv)
{
	const char *marker = beside(argv[1], ".clean");
	if (is_run(argc, argv)) {
		unlink(marker);
		uint64_t *p = pm_create(argv[1], POOL);
		PUT(p[0], 42); //~ 1 ordering
#if !HAS_BUG(1)
		persist(&p[0], 8);
#endif
		PUT(p[8], 1);
		flush(&p[0], 8);
		persist(&p[8], 8);
		close(open(marker, O_CREAT | O_RDWR, 0600));
		return 0;
	}
	uint64_t *p = pm_open(argv[1], POOL);
	if (p && !exists(marker))
		insist(p[8] != 1 || p[0] == 42, "valid without data");
	return 0;
}
