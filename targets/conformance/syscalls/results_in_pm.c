//@ build: c
//@ cflags: -O1
//@ pool: varies
// System calls whose result buffer lies in PM: pipe, getcwd, uname, poll, getrlimit, getsockopt, ioctl, readlink, wait.
#include "pm.h"
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <sys/wait.h>

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	char *pm = pm_create(argv[1], 16384);
	int *ends = (int *)pm;
	CHECK(pipe(ends) == 0);
	CHECK(uname((struct utsname *)(pm + 64)) == 0 && strcmp(pm + 64, "Linux") == 0);
	CHECK(getcwd(pm + 1024, 1024) == pm + 1024);
	CHECK(write(ends[1], "abc", 3) == 3);
	struct pollfd *p = (struct pollfd *)(pm + 2048);
	PUT(int, &p->fd, ends[0]);
	PUT(short, &p->events, POLLIN);
	CHECK(poll(p, 1, 0) == 1 && p->revents == POLLIN);
	CHECK(ioctl(ends[0], FIONREAD, pm + 2112) == 0 && *(int *)(pm + 2112) == 3);
	CHECK(getrlimit(RLIMIT_CORE, (struct rlimit *)(pm + 2176)) == 0);
	CHECK(symlink("target-of-link", "link") == 0 || errno == EEXIST);
	CHECK(readlink("link", pm + 2240, 64) == 14);
	int s[2], *size = (int *)(pm + 2304), len = 4;
	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, s) == 0);
	CHECK(getsockopt(s[0], SOL_SOCKET, SO_TYPE, size, (socklen_t *)&len) == 0 && *size == SOCK_STREAM);
	pid_t child = fork();
	if (child == 0)
		_exit(9);
	CHECK(waitpid(child, (int *)(pm + 2368), 0) == child && WEXITSTATUS(*(int *)(pm + 2368)) == 9);
	PUT(int, pm + 2432, 1);
	return 0;
}
