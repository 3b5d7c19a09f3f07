//@ build: c
//@ cflags: -O1
// A shell's work by hand: two children joined by a pipe, the reader puts what it got into the pool.
#include "pm.h"
#include <sys/wait.h>

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	char *pm = pm_create(argv[1], 4096);
	int ends[2];
	CHECK(pipe(ends) == 0);
	pid_t reader = fork();
	if (reader == 0) {
		CHECK(dup2(ends[0], 0) == 0 && close(ends[0]) == 0 && close(ends[1]) == 0);
		char c;
		int i = 0;
		while (read(0, &c, 1) == 1)
			PUT(char, pm + i++, c);
		_exit(i);
	}
	close(ends[0]);
	CHECK(write(ends[1], "hello", 5) == 5 && close(ends[1]) == 0);
	int status;
	CHECK(waitpid(reader, &status, 0) == reader && WEXITSTATUS(status) == 5);
	CHECK(memcmp(pm, "hello", 5) == 0);
	PUT(char, pm + 5, '!');
	return 0;
}
