/* fork, exit and wait, argv[1] times, from a process whose code has run before. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 1000;
	for (int i = 0; i < rounds; i++) {
		pid_t child = fork();
		if (child == 0)
			_exit(i & 63);
		int status;
		if (waitpid(child, &status, 0) != child || WEXITSTATUS(status) != (i & 63))
			return 1;
	}
	return 0;
}
