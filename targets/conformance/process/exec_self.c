//@ build: c
//@ cflags: -O1
// A process that replaces itself three times; the pool is mapped anew each time. Failed execs return.
#include "pm.h"

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	int round = argc > 3 ? atoi(argv[3]) : 0;
	char *pm;
	if (round == 0) {
		pm = pm_create(argv[1], 4096);
	} else {
		int fd = open(argv[1], O_RDWR | O_CLOEXEC);
		CHECK(fd >= 0);
		pm = pm_map(fd, 4096);
		CHECK(*(int *)(pm + 8 * round - 8) == round);
		CHECK(strcmp(getenv("ROUND"), argv[3]) == 0);
	}
	PUT(int, pm + 8 * round, round + 1);
	pm_persist(pm);
	if (round == 3)
		return 0;
	char number[16], variable[32];
	snprintf(number, sizeof number, "%d", round + 1);
	snprintf(variable, sizeof variable, "ROUND=%d", round + 1);
	char *args[] = { argv[0], argv[1], ".", number, NULL };
	char *environment[] = { variable, NULL };
	CHECK(execve("./missing", args, environment) == -1 && errno == ENOENT);
	CHECK(execve(argv[1], args, environment) == -1 && errno == EACCES);
	PUT(int, pm + 512, round);
	execve("/proc/self/exe", args, environment);
	return 1;
}
