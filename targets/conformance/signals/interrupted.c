//@ build: c
//@ cflags: -O1
// A signal ends a blocking read with EINTR, or restarts it (SA_RESTART); pause and sigsuspend return.
#include "pm.h"
#include <signal.h>
#include <sys/time.h>

static char *pm;
static int ends[2];
static volatile int next, feed, armed;

/* The timer repeats, so that it also ends a call that begins late; only its first tick counts. */
static void tick(int sig)
{
	if (!armed)
		return;
	armed = 0;
	PUT(int, pm + 4 * next++, sig);
	if (feed)
		CHECK(write(ends[1], "z", 1) == 1);
}

static void arm(int flags)
{
	struct sigaction sa = { .sa_handler = tick, .sa_flags = flags };
	CHECK(sigaction(SIGALRM, &sa, NULL) == 0);
	struct itimerval often = { { 0, 5000 }, { 0, 3000 } };
	armed = 1;
	CHECK(setitimer(ITIMER_REAL, &often, NULL) == 0);
}

static void disarm(void)
{
	struct itimerval never = { { 0, 0 }, { 0, 0 } };
	CHECK(setitimer(ITIMER_REAL, &never, NULL) == 0);
}

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	pm = pm_create(argv[1], 4096);
	char c;
	CHECK(pipe(ends) == 0);
	arm(0);
	CHECK(read(ends[0], &c, 1) == -1 && errno == EINTR);
	disarm();
	PUT(int, pm + 4 * next++, 100);
	feed = 1;
	arm(SA_RESTART);
	CHECK(read(ends[0], &c, 1) == 1 && c == 'z');
	disarm();
	PUT(int, pm + 4 * next++, 101);
	feed = 0;
	sigset_t none, alarm_only;
	sigemptyset(&none);
	sigemptyset(&alarm_only);
	sigaddset(&alarm_only, SIGALRM);
	CHECK(sigprocmask(SIG_BLOCK, &alarm_only, NULL) == 0);
	arm(0);
	CHECK(sigsuspend(&none) == -1 && errno == EINTR);
	disarm();
	PUT(int, pm + 4 * next++, 102);
	arm(0);
	int sig;
	CHECK(sigwait(&alarm_only, &sig) == 0 && sig == SIGALRM);
	disarm();
	PUT(int, pm + 4 * next++, 103);
	CHECK(next == 7);
	return 0;
}
