//@ build: c
//@ cflags: -O1
// posix_spawn of the program itself and of a file that is not there: the error comes back to the caller.
#include "pm.h"
#include <spawn.h>
#include <sys/wait.h>

extern char **environ;

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	if (argc > 3) {
		int fd = open(argv[1], O_RDWR);
		CHECK(fd >= 0);
		char *pm = pm_map(fd, 4096);
		PUT(int, pm + 64, 2);
		return 0;
	}
	char *pm = pm_create(argv[1], 4096);
	PUT(int, pm, 1);
	pid_t child;
	char *args[] = { argv[0], argv[1], ".", "child", NULL };
	CHECK(posix_spawn(&child, "/proc/self/exe", NULL, NULL, args, environ) == 0);
	int status;
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	CHECK(*(int *)(pm + 64) == 2);
	CHECK(posix_spawn(&child, "./missing", NULL, NULL, args, environ) == ENOENT);
	CHECK(posix_spawnp(&child, "missing-from-path", NULL, NULL, args, environ) == ENOENT);
	CHECK(posix_spawn(&child, argv[1], NULL, NULL, args, environ) == EACCES);
	PUT(int, pm + 8, 4);
	return 0;
}
