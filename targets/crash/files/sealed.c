//! A file beside the pool is sealed, by its permissions, when what it stands for is in the pool.
//! variants: 1
//! run: {bin} {pool} run
//! recover: {bin} {pool} check
#include "files.h"

int main(int argc, char **argv)
{
	const char *seal = beside(argv[1], ".seal");
	if (is_run(argc, argv)) {
		uint64_t *p = pm_create(argv[1], POOL);
		write_number(seal, 1);
		PUT(p[0], 42); //~ 1 ordering
#if !HAS_BUG(1)
		persist(p, 8);
#endif
		if (chmod(seal, 0444) != 0)
			return 3;
		persist(p, 8);
		return 0;
	}
	uint64_t *p = pm_open(argv[1], POOL);
	struct stat st;
	if (p && stat(seal, &st) == 0 && (st.st_mode & 0777) == 0444)
		insist(p[0] == 42, "sealed without its data");
	return 0;
}
