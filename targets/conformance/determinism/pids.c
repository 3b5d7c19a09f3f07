//@ build: c
//@ cflags: -O1
//@ compare: exact lengths
//@ pool: varies
// Process and thread ids, as far as the recorder can make them the same every time.
#include "pm.h"
#include <sys/wait.h>

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	char *pm = pm_create(argv[1], 4096);
	PUT(int, pm, getpid());
	PUT(int, pm + 4, gettid());
	CHECK(getpid() == gettid());
	pid_t child = fork();
	if (child == 0) {
		PUT(int, pm + 8, getpid());
		_exit(0);
	}
	CHECK(waitpid(child, NULL, 0) == child && *(int *)(pm + 8) == child);
	PUT(int, pm + 12, child - getpid());
	return 0;
}
