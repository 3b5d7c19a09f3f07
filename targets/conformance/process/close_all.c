//@ build: c
//@ cflags: -O1
// Daemons close every descriptor they do not know; recording goes on, also after the limit was lowered.
#include "pm.h"
#include <sys/resource.h>
#include <sys/wait.h>

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	char *pm = pm_create(argv[1], 4096);
	PUT(int, pm, 1);
	CHECK(close_range(3, ~0u, 0) == 0);
	PUT(int, pm + 8, 2);
	for (int fd = 3; fd < 1024; fd++)
		close(fd);
	PUT(int, pm + 16, 3);
	struct rlimit limit = { 16, 16 };
	CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
	int fd = open(argv[1], O_RDWR);
	CHECK(fd == 3);
	char *again = pm_map(fd, 4096);
	PUT(int, again + 24, 4);
	CHECK(dup2(1, 15) == 15 && close(15) == 0);
	pid_t child = fork();
	if (child == 0) {
		PUT(int, pm + 32, 5);
		_exit(0);
	}
	int status;
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	return 0;
}
