//! A count in the pool, and a copy of it in a file that is replaced, or (the bug) rewritten in place: O_TRUNC, then the new number.
//! variants: 1
//! run: {bin} {pool} run
//! recover: {bin} {pool} check
#include "files.h"

int main(int argc, char **argv)
{
	const char *copy = beside(argv[1], ".copy");
	if (is_run(argc, argv)) {
		uint64_t *p = pm_create(argv[1], POOL);
		for (int i = 1; i <= 3; i++) {
#if HAS_BUG(1)
			write_number(copy, i);
#else
			const char *made = beside(argv[1], ".copy.tmp");
			write_number(made, i);
			if (rename(made, copy) != 0)
				return 3;
#endif
			PUT(p[0], (uint64_t)i); //~ 1 atomicity
			persist(p, 8);
		}
		return 0;
	}
	uint64_t *p = pm_open(argv[1], POOL);
	if (!p)
		return 0;
	uint64_t number = (uint64_t)read_number(copy);
	insist(number == p[0] || number == p[0] + 1, "the copy is lost");
	return 0;
}
