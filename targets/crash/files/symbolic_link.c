//! Generations of a file, and a symbolic link to the current one that is replaced by a rename; the pool counts the generations.
//! variants: 1
//! run: {bin} {pool} run
//! recover: {bin} {pool} check
#include "files.h"

static char *generation_path(const char *pool, int generation)
{
	char end[32];
	snprintf(end, sizeof end, ".gen%d", generation);
	return beside(pool, end);
}

static void point_at(const char *pool, int generation)
{
	const char *made = beside(pool, ".current.tmp");
	if (symlink(generation_path(pool, generation), made) != 0 || rename(made, beside(pool, ".current")) != 0)
		exit(3);
}

int main(int argc, char **argv)
{
	if (is_run(argc, argv)) {
		uint64_t *p = pm_create(argv[1], POOL);
		for (int generation = 1; generation <= 3; generation++) {
			write_number(generation_path(argv[1], generation), generation);
#if !HAS_BUG(1)
			point_at(argv[1], generation);
#endif
			PUT(p[0], (uint64_t)generation); //~ 1 atomicity
			persist(p, 8);
#if HAS_BUG(1)
			point_at(argv[1], generation);
#endif
		}
		return 0;
	}
	uint64_t *p = pm_open(argv[1], POOL);
	if (!p)
		return 0;
	uint64_t current = (uint64_t)read_number(beside(argv[1], ".current"));
	insist(current == p[0] || current == p[0] + 1, "the link is behind the pool");
	return 0;
}
