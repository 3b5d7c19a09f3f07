//@ build: c
//@ cflags: -O1
// SIGCHLD's handler reaps a child and notes its end in PM; fork inside a handler.
#include "pm.h"
#include <signal.h>
#include <sys/wait.h>

static char *pm;
static volatile int reaped, forked;

static void on_child(int sig, siginfo_t *info, void *raw)
{
	(void)sig, (void)raw;
	int status;
	CHECK(info->si_code == CLD_EXITED && waitpid(info->si_pid, &status, WNOHANG) == info->si_pid);
	PUT(int, pm + 8 * reaped, WEXITSTATUS(status));
	reaped++;
}

static void on_user(int sig)
{
	(void)sig;
	if (fork() == 0) {
		PUT(int, pm + 512, 9);
		_exit(21);
	}
	forked++;
}

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	pm = pm_create(argv[1], 4096);
	struct sigaction sa = { .sa_sigaction = on_child, .sa_flags = SA_SIGINFO | SA_RESTART };
	CHECK(sigaction(SIGCHLD, &sa, NULL) == 0);
	signal(SIGUSR1, on_user);
	sigset_t block, before;
	sigemptyset(&block);
	sigaddset(&block, SIGCHLD);
	CHECK(sigprocmask(SIG_BLOCK, &block, &before) == 0);
	if (fork() == 0) {
		PUT(int, pm + 256, 7);
		_exit(20);
	}
	while (reaped < 1)
		sigsuspend(&before);
	raise(SIGUSR1);
	while (reaped < 2)
		sigsuspend(&before);
	CHECK(forked == 1 && *(int *)pm == 20 && *(int *)(pm + 8) == 21);
	return 0;
}
