//! The child stores into the pool, the parent tells so in a file when the child has ended.
//! variants: 1
//! run: {bin} {pool} run
//! recover: {bin} {pool} check
#include "files.h"
#include <sys/wait.h>

int main(int argc, char **argv)
{
	const char *done = beside(argv[1], ".done");
	if (is_run(argc, argv)) {
		uint64_t *p = pm_create(argv[1], POOL);
		for (int i = 0; i < 2; i++) {
			pid_t child = fork();
			if (child == 0) {
				PUT(p[8 * i], 42); //~ 1 ordering
#if !HAS_BUG(1)
				persist(&p[8 * i], 8);
#endif
				_exit(0);
			}
			if (child < 0 || waitpid(child, NULL, 0) != child)
				return 3;
			write_number(done, i + 1);
			persist(&p[8 * i], 8);
		}
		return 0;
	}
	uint64_t *p = pm_open(argv[1], POOL);
	int records = read_number(done);
	for (int i = 0; p && i < records; i++)
		insist(p[8 * i] == 42, "what the child stored is lost");
	return 0;
}
