//@ build: c
//@ cflags: -O1
// A script whose #! line names this program: the kernel's rules for its argument vector hold.
#include "pm.h"
#include <sys/wait.h>

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	if (strcmp(argv[1], "--from script") == 0) {
		CHECK(argc == 5 && strcmp(argv[2], "./script") == 0 && strcmp(argv[4], "two words") == 0);
		int fd = open(argv[3], O_RDWR);
		CHECK(fd >= 0);
		char *pm = pm_map(fd, 4096);
		PUT(int, pm + 64, 2);
		return 4;
	}
	char *pm = pm_create(argv[1], 4096);
	char self[4000], line[4200];
	ssize_t len = readlink("/proc/self/exe", self, sizeof self - 1);
	CHECK(len > 0 && len < 200);
	self[len] = 0;
	int fd = open("script", O_WRONLY | O_CREAT | O_TRUNC, 0755);
	CHECK(fd >= 0);
	int n = snprintf(line, sizeof line, "#! %s --from script\nanything\n", self);
	CHECK(write(fd, line, n) == n && close(fd) == 0);
	PUT(int, pm, 1);
	pid_t child = fork();
	if (child == 0) {
		execl("./script", "name", argv[1], "two words", (char *)NULL);
		_exit(99);
	}
	int status;
	CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 4);
	CHECK(*(int *)(pm + 64) == 2);
	return 0;
}
