//@ build: c
//@ cflags: -O1
// Descriptors are numbered as natively: the lowest free one, and none of the recorder's is in the way.
#include "pm.h"
#include <sys/wait.h>

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	int fd = pm_file(argv[1], 4096);
	CHECK(fd == 3);
	char *pm = pm_map(fd, 4096);
	CHECK(open("/dev/null", O_RDONLY) == 4);
	CHECK(dup(fd) == 5 && close(4) == 0);
	PUT(int, pm, 1);
	CHECK(open("/dev/null", O_RDONLY) == 4);
	int ends[2];
	CHECK(pipe(ends) == 0 && ends[0] == 6 && ends[1] == 7);
	CHECK(dup2(fd, 100) == 100 && pwrite(100, "via 100", 7, 64) == 7);
	CHECK(fcntl(fd, F_DUPFD_CLOEXEC, 50) == 50);
	pid_t child = fork();
	if (child == 0) {
		CHECK(open("/dev/null", O_RDONLY) == 8);
		PUT(int, pm + 8, 2);
		_exit(0);
	}
	int status;
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	return 0;
}
