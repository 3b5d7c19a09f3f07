//! A crash between the creation of the pool's file and its growth leaves an empty file.
//! variants: 1
//! run: {bin} {pool} run
//! recover: {bin} {pool} check
#include "files.h"

int main(int argc, char **argv)
{
	if (is_run(argc, argv)) {
		uint64_t *p = pm_create(argv[1], POOL);
		PUT(p[8], 42);
		persist(&p[8], 8);
		PUT(p[0], 1);
		persist(&p[0], 8);
		return 0;
	}
#if HAS_BUG(1)
	int fd = open(argv[1], O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return 0;
	volatile uint64_t *p = pm_map(fd, POOL);
#else
	volatile uint64_t *p = pm_open(argv[1], POOL);
	if (!p)
		return 0;
#endif
	insist(p[0] != 1 || p[8] == 42, "valid without data"); //~ 1 recovery
	return 0;
}
