//@ build: c
//@ cflags: -O1 -masm=intel -no-pie -fno-pie
// A handler that changes the interrupted context: general registers, xmm0, the signal mask and the pc.
#include "pm.h"
#include <signal.h>
#include <ucontext.h>

static char *pm;
extern char elsewhere[];

static void handler(int sig, siginfo_t *info, void *raw)
{
	(void)sig, (void)info;
	ucontext_t *u = raw;
	u->uc_mcontext.gregs[REG_RBX] = 0xb0b;
	u->uc_mcontext.gregs[REG_R15] = 0xf0f;
	u->uc_mcontext.gregs[REG_RIP] = (long)elsewhere;
	u->uc_mcontext.fpregs->_xmm[0].element[0] = 0x4242;
	sigaddset(&u->uc_sigmask, SIGWINCH);
	PUT(int, pm, 1);
}

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	pm = pm_create(argv[1], 4096);
	struct sigaction sa = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO };
	CHECK(sigaction(SIGILL, &sa, NULL) == 0);
	long b, f;
	unsigned x;
	__asm__ volatile("xor ebx, ebx\n\txor r15d, r15d\n\tpxor xmm0, xmm0\n\tud2\n\tmov rbx, 1\n\tmov r15, 2\n"
			 "elsewhere:\n\tmov qword ptr [%3], rbx\n\tmov qword ptr [%3 + 8], r15\n\tmovd dword ptr [%3 + 16], xmm0\n\t"
			 "mov %0, rbx\n\tmov %1, r15\n\tmovd %2, xmm0"
			 : "=&r"(b), "=&r"(f), "=&r"(x) : "r"(pm + 64) : "rbx", "r15", "xmm0", "memory", "cc");
	CHECK(b == 0xb0b && f == 0xf0f && x == 0x4242);
	sigset_t now;
	CHECK(sigprocmask(SIG_BLOCK, NULL, &now) == 0 && sigismember(&now, SIGWINCH));
	return 0;
}
