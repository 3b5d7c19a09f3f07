//@ build: c
//@ cflags: -O1
// Children of children, a child that maps a pool of its own, and one that dies by a signal.
#include "pm.h"
#include <signal.h>
#include <sys/wait.h>

static char *pm;

static void descend(int depth)
{
	PUT(int, pm + 8 * depth, depth + 1);
	if (depth == 3)
		return;
	pid_t child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		descend(depth + 1);
		PUT(int, pm + 64 + 8 * depth, depth + 1);
		_exit(0);
	}
	int status;
	CHECK(waitpid(child, &status, 0) == child && status == 0);
}

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	pm = pm_create(argv[1], 4096);
	descend(0);
	pid_t child = fork();
	if (child == 0) {
		char *own = pm_create("child.pool", 4096);
		PUT(int, own, 5);
		munmap(pm, 4096);
		PUT(int, own + 4, 6);
		_exit(0);
	}
	int status;
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	child = fork();
	if (child == 0) {
		PUT(int, pm + 256, 1);
		raise(SIGKILL);
	}
	CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	child = fork();
	if (child == 0) {
		PUT(int, pm + 256, 2);
		abort();
	}
	CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	PUT(int, pm + 256, 3);
	return 0;
}
