//@ build: c
//@ cflags: -O1
// A child writes the pool through the mapping it inherited; the parent waits, sees it, and goes on.
#include "pm.h"
#include <sys/wait.h>

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	char *pm = pm_create(argv[1], 8192);
	int private = 1;
	PUT(int, pm, 1);
	pm_persist(pm);
	for (int i = 0; i < 3; i++) {
		pid_t child = fork();
		CHECK(child >= 0);
		if (child == 0) {
			private = 99;
			PUT(int, pm + 4096 + 8 * i, private + i);
			pm_persist(pm + 4096);
			_exit(10 + i);
		}
		int status;
		CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 10 + i);
		CHECK(private == 1 && *(int *)(pm + 4096 + 8 * i) == 99 + i);
		PUT(int, pm + 8 * i, i);
	}
	return 0;
}
