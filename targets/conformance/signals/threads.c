//@ build: c
//@ cflags: -O1 -pthread
//@ compare: exact thread-events-float
// Signals sent to one thread by pthread_kill: one for its handler, one for its sigwait, one from itself.
#include "pm.h"
#include <pthread.h>
#include <signal.h>

static char *pm;
static pthread_t first;

static void handler(int sig)
{
	CHECK(!pthread_equal(pthread_self(), first));
	PUT(int, pm + 64, sig);
}

static void *work(void *arg)
{
	sigset_t set;
	int sig;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	CHECK(sigwait(&set, &sig) == 0 && sig == SIGUSR2);
	PUT(int, pm, sig);
	sigaddset(&set, SIGUSR1);
	pthread_kill(pthread_self(), SIGUSR1);
	PUT(int, pm + 8, 1);
	CHECK(pthread_sigmask(SIG_UNBLOCK, &set, NULL) == 0);
	PUT(int, pm + 16, 2);
	return arg;
}

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	pm = pm_create(argv[1], 4096);
	first = pthread_self();
	struct sigaction sa = { .sa_handler = handler };
	CHECK(sigaction(SIGUSR1, &sa, NULL) == 0);
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGUSR2);
	CHECK(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
	pthread_t t;
	CHECK(pthread_create(&t, NULL, work, NULL) == 0);
	CHECK(pthread_kill(t, SIGUSR2) == 0);
	CHECK(pthread_join(t, NULL) == 0);
	CHECK(*(int *)(pm + 64) == SIGUSR1);
	return 0;
}
