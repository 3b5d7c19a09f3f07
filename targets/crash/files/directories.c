//! A generation of files in a folder of its own; the pool names the current one. Old folders go away afterwards.
//! variants: 1
//! run: {bin} {pool} run
//! recover: {bin} {pool} check
#include "files.h"

static char *folder(const char *pool, uint64_t generation)
{
	char end[32];
	snprintf(end, sizeof end, ".gen%d", (int)generation);
	return beside(pool, end);
}

int main(int argc, char **argv)
{
	if (is_run(argc, argv)) {
		uint64_t *p = pm_create(argv[1], POOL);
		for (uint64_t generation = 1; generation <= 3; generation++) {
			char *new = folder(argv[1], generation), *old = folder(argv[1], generation - 1);
			if (mkdir(new, 0755) != 0)
				return 3;
			write_number(beside(new, "/data"), (int)generation);
#if HAS_BUG(1)
			if (generation > 1 && (unlink(beside(old, "/data")) != 0 || rmdir(old) != 0))
				return 3;
#endif
			PUT(p[0], generation); //~ 1 atomicity
			persist(p, 8);
#if !HAS_BUG(1)
			if (generation > 1 && (unlink(beside(old, "/data")) != 0 || rmdir(old) != 0))
				return 3;
#endif
		}
		return 0;
	}
	uint64_t *p = pm_open(argv[1], POOL);
	if (!p || p[0] == 0)
		return 0;
	insist((uint64_t)read_number(beside(folder(argv[1], p[0]), "/data")) == p[0], "the current generation is not there");
	return 0;
}
