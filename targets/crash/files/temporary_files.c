//! Each operation writes the new state to a temporary file and renames it over the old one, then counts in the pool.
//! variants: 1
//! run: {bin} {pool} run
//! recover: {bin} {pool} check
#include "files.h"

int main(int argc, char **argv)
{
	const char *state = beside(argv[1], ".state"), *made = beside(argv[1], ".state.tmp");
	if (is_run(argc, argv)) {
		uint64_t *p = pm_create(argv[1], POOL);
		for (int i = 1; i <= 4; i++) {
			write_number(made, i);
#if HAS_BUG(1)
			PUT(p[0], (uint64_t)i); //~ 1 atomicity
			persist(p, 8);
			if (rename(made, state) != 0)
				return 3;
#else
			if (rename(made, state) != 0)
				return 3;
			PUT(p[0], (uint64_t)i);
			persist(p, 8);
#endif
		}
		unlink(made);
		return 0;
	}
	uint64_t *p = pm_open(argv[1], POOL);
	if (!p)
		return 0;
	unlink(made);
	insist(p[0] <= (uint64_t)read_number(state), "the pool counts a state that is not there");
	return 0;
}
