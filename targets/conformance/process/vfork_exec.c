//@ build: c
//@ cflags: -O1
// vfork and exec of the program itself; the child opens the pool by its path and writes to it.
#include "pm.h"
#include <sys/wait.h>

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	if (argc > 3 && strcmp(argv[3], "child") == 0) {
		int fd = open(argv[1], O_RDWR);
		CHECK(fd >= 0);
		char *pm = pm_map(fd, 4096);
		CHECK(*(int *)pm == 1);
		PUT(int, pm + 64, 2);
		pm_persist(pm + 64);
		return 3;
	}
	char *pm = pm_create(argv[1], 4096);
	PUT(int, pm, 1);
	pid_t child = vfork();
	if (child == 0) {
		execl("/proc/self/exe", argv[0], argv[1], argc > 2 ? argv[2] : ".", "child", (char *)NULL);
		_exit(127);
	}
	int status;
	CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 3);
	CHECK(*(int *)(pm + 64) == 2);
	child = vfork();
	if (child == 0) {
		execl("./no-such-program", "x", (char *)NULL);
		_exit(errno == ENOENT ? 55 : 56);
	}
	CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 55);
	PUT(int, pm + 128, 3);
	return 0;
}
