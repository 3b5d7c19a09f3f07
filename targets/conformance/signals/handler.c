//@ build: c
//@ cflags: -O1
// Handlers that write PM: raise, kill, sigqueue with a value, SA_RESETHAND, SA_NODEFER recursion, blocked and pending ones.
#include "pm.h"
#include <signal.h>

static char *pm;
static volatile int next, depth;

static void simple(int sig) { PUT(int, pm + 4 * next++, sig); }

static void with_info(int sig, siginfo_t *info, void *context)
{
	CHECK(context && info->si_signo == sig && info->si_pid == getpid());
	PUT(int, pm + 4 * next++, info->si_value.sival_int);
	pm_persist(pm);
}

static void recursive(int sig)
{
	PUT(int, pm + 4 * next++, 100 + depth);
	if (++depth < 4)
		raise(sig);
	PUT(int, pm + 4 * next++, 200 + depth--);
}

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	pm = pm_create(argv[1], 4096);
	struct sigaction sa = { .sa_handler = simple }, old;
	CHECK(sigaction(SIGUSR1, &sa, NULL) == 0);
	raise(SIGUSR1);
	kill(getpid(), SIGUSR1);
	sa.sa_sigaction = with_info;
	sa.sa_flags = SA_SIGINFO;
	CHECK(sigaction(SIGUSR2, &sa, &old) == 0 && old.sa_handler == SIG_DFL);
	sigqueue(getpid(), SIGUSR2, (union sigval){ .sival_int = 77 });
	sa.sa_handler = recursive;
	sa.sa_flags = SA_NODEFER;
	CHECK(sigaction(SIGHUP, &sa, NULL) == 0);
	raise(SIGHUP);
	sa.sa_handler = simple;
	sa.sa_flags = SA_RESETHAND;
	CHECK(sigaction(SIGTERM, &sa, NULL) == 0);
	raise(SIGTERM);
	CHECK(sigaction(SIGTERM, NULL, &old) == 0 && old.sa_handler == SIG_DFL);
	CHECK(sigaction(SIGUSR1, NULL, &old) == 0 && old.sa_handler == simple);
	sigset_t set, pending;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	CHECK(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
	raise(SIGUSR1);
	raise(SIGUSR1);
	CHECK(sigpending(&pending) == 0 && sigismember(&pending, SIGUSR1));
	PUT(int, pm + 4 * next++, 300);
	CHECK(sigprocmask(SIG_UNBLOCK, &set, NULL) == 0);
	PUT(int, pm + 4 * next++, 301);
	CHECK(signal(SIGUSR1, SIG_IGN) == simple);
	raise(SIGUSR1);
	CHECK(next == 2 + 1 + 8 + 1 + 1 + 1 + 1 - depth);
	return 0;
}
