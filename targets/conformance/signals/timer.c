//@ build: c
//@ cflags: -O2
// An interval timer interrupts a loop that computes; the loop's result must not change, the handler writes PM each time.
#include "pm.h"
#include <signal.h>
#include <sys/time.h>

static char *pm;
static volatile sig_atomic_t ticks;

static void tick(int sig)
{
	(void)sig;
	if (ticks < 5) {
		PUT(int, pm + 4 * ticks, ticks + 1);
		pm_persist(pm);
		ticks++;
	}
}

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	pm = pm_create(argv[1], 4096);
	struct sigaction sa = { .sa_handler = tick, .sa_flags = SA_RESTART };
	CHECK(sigaction(SIGALRM, &sa, NULL) == 0);
	struct itimerval often = { { 0, 2000 }, { 0, 2000 } }, never = { { 0, 0 }, { 0, 0 } };
	CHECK(setitimer(ITIMER_REAL, &often, NULL) == 0);
	while (ticks < 5) {
		unsigned x = 1, sum = 0;
		for (int i = 0; i < 1000; i++) {
			x = x * 1664525u + 1013904223u;
			sum += x >> 16;
		}
		static unsigned first;
		if (!first)
			first = sum;
		CHECK(sum == first);
	}
	CHECK(setitimer(ITIMER_REAL, &never, NULL) == 0);
	PUT(int, pm + 64, 1);
	return 0;
}
