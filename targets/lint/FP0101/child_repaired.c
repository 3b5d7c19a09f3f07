//@ build: c
//@ cflags: -O1 -mclwb -pthread
//@ needs: clwb
// A child process stores, and its parent, which has the pool mapped as well, persists.
#include "pm.h"
#include <sys/wait.h>

int main(int argc, char **argv)
{
	uint64_t *slot = pm_create(argv[1]);
	PUT(slot[0], 1);
	PERSIST(slot);
	pid_t child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		PUT(slot[1], 2);
		_exit(0);
	}
	CHECK(waitpid(child, NULL, 0) == child);
	PERSIST(slot);
	return 0;
}
