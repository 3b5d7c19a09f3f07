//@ build: c
//@ cflags: -O1
// siglongjmp out of nested handlers, many times; the mask is restored and call paths stay right.
#include "pm.h"
#include <setjmp.h>
#include <signal.h>

static char *pm;
static sigjmp_buf out;
static volatile int next;

static void inner(int sig)
{
	PUT(int, pm + 4 * next++, sig);
	siglongjmp(out, 2);
}

static void outer(int sig)
{
	PUT(int, pm + 4 * next++, sig);
	raise(SIGUSR2);
	PUT(int, pm + 4092, 99);
}

static void __attribute__((noinline)) third(void) { raise(SIGUSR1); }
static void __attribute__((noinline)) second(void) { third(); PUT(int, pm + 4092, 98); }

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	pm = pm_create(argv[1], 4096);
	struct sigaction sa = { .sa_handler = outer };
	CHECK(sigaction(SIGUSR1, &sa, NULL) == 0);
	sa.sa_handler = inner;
	CHECK(sigaction(SIGUSR2, &sa, NULL) == 0);
	for (volatile int i = 0; i < 20; i++) {
		if (sigsetjmp(out, 1) == 0)
			second();
		PUT(int, pm + 4 * next++, i);
	}
	CHECK(next == 60 && *(int *)(pm + 4092) == 0);
	sigset_t now;
	CHECK(sigprocmask(SIG_BLOCK, NULL, &now) == 0 && !sigismember(&now, SIGUSR1) && !sigismember(&now, SIGUSR2));
	return 0;
}
