//! Two pools of which one is current; a complete new content is exchanged with the current one (RENAME_EXCHANGE).
//! variants: 1
//! run: {bin} {pool} run
//! recover: {bin} {pool} check
#include "files.h"

#define WORDS 3

static void fill(uint64_t *p, uint64_t value)
{
	for (int i = 0; i < WORDS; i++)
		PUT(p[8 * i], value); //~ 1 ordering
}

int main(int argc, char **argv)
{
	const char *spare = beside(argv[1], ".spare");
	if (is_run(argc, argv)) {
		uint64_t *current = pm_create(argv[1], POOL), *other = pm_create(spare, POOL);
		for (uint64_t value = 1; value <= 3; value++) {
			fill(other, value);
#if !HAS_BUG(1)
			persist(other, POOL);
#endif
			if (renameat2(AT_FDCWD, argv[1], AT_FDCWD, spare, RENAME_EXCHANGE) != 0)
				return 3;
			persist(other, POOL);
			uint64_t *swapped = current;
			current = other;
			other = swapped;
		}
		return 0;
	}
	uint64_t *p = pm_open(argv[1], POOL);
	for (int i = 1; p && i < WORDS; i++)
		insist(p[8 * i] == p[0], "the current pool is half written");
	return 0;
}
