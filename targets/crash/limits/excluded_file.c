//! A second mapped file that --pm excludes: recovery finds it as the whole run left it.
//! variants: 1
//! run: {bin} {pool} run
//! recover: {bin} {pool} check
//! options: --pm */pool
//! missed: files that --pm excludes are not part of a crash state
#include "files.h"

int main(int argc, char **argv)
{
	const char *path = beside(argv[1], ".data");
	if (is_run(argc, argv)) {
		uint64_t *data = pm_create(path, POOL), *p = pm_create(argv[1], POOL);
		PUT(data[0], 42); //~ 1 ordering
#if !HAS_BUG(1)
		persist(data, 8);
#endif
		PUT(p[0], 1);
		persist(p, 8);
		persist(data, 8);
		return 0;
	}
	uint64_t *p = pm_open(argv[1], POOL);
	if (!p || p[0] != 1)
		return 0;
	uint64_t *data = pm_open(path, POOL);
	insist(data && data[0] == 42, "complete without its data");
	return 0;
}
