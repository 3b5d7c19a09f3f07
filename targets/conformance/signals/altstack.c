//@ build: c
//@ cflags: -O1
// A handler on an alternate stack, entered by overflow of the ordinary one; it leaves by siglongjmp.
#include "pm.h"
#include <setjmp.h>
#include <signal.h>
#include <sys/resource.h>

static char *pm;
static sigjmp_buf out;
static char stack[65536];

static void handler(int sig)
{
	char here;
	CHECK(sig == SIGSEGV && &here > stack && &here < stack + sizeof stack);
	stack_t now;
	CHECK(sigaltstack(NULL, &now) == 0 && (now.ss_flags & SS_ONSTACK));
	PUT(int, pm + 8, *(int *)(pm + 8) + 1);
	pm_persist(pm + 8);
	siglongjmp(out, 1);
}

static int __attribute__((noinline)) overflow(int n)
{
	volatile char room[8192];
	room[n % 8192] = (char)n;
	return overflow(n + 1) + room[n % 8192];
}

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	pm = pm_create(argv[1], 4096);
	struct rlimit small = { 256 * 1024, RLIM_INFINITY };
	getrlimit(RLIMIT_STACK, &small);
	small.rlim_cur = 256 * 1024;
	CHECK(setrlimit(RLIMIT_STACK, &small) == 0);
	stack_t alt = { .ss_sp = stack, .ss_size = sizeof stack }, old;
	CHECK(sigaltstack(&alt, &old) == 0 && (old.ss_flags & SS_DISABLE));
	struct sigaction sa = { .sa_handler = handler, .sa_flags = SA_ONSTACK };
	CHECK(sigaction(SIGSEGV, &sa, NULL) == 0);
	for (volatile int i = 0; i < 2; i++) {
		if (sigsetjmp(out, 1) == 0)
			overflow(1);
		PUT(int, pm + 64 + 4 * i, i + 1);
	}
	CHECK(*(int *)(pm + 8) == 2);
	return 0;
}
