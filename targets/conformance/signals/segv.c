//@ build: c
//@ cflags: -O1 -masm=intel -no-pie -fno-pie
// A faulting load and store: the handler sees the exact pc, address, registers and flags, and goes on behind it.
#include "pm.h"
#include <signal.h>
#include <ucontext.h>

static char *pm;
static volatile int next;
extern char fault_load[], after_load[], fault_store[], after_store[];

static void handler(int sig, siginfo_t *info, void *raw)
{
	greg_t *r = ((ucontext_t *)raw)->uc_mcontext.gregs;
	CHECK(sig == SIGSEGV && info->si_code == SEGV_MAPERR);
	PUT(long, pm + 8 * next++, r[REG_RIP]);
	PUT(long, pm + 8 * next++, info->si_addr);
	PUT(long, pm + 8 * next++, r[REG_RBX]);
	PUT(long, pm + 8 * next++, r[REG_R11]);
	PUT(long, pm + 8 * next++, r[REG_EFL] & 0xcd5);
	pm_persist(pm);
	if (r[REG_RIP] == (long)fault_load) {
		r[REG_RIP] = (long)after_load;
		r[REG_RAX] = 0x1234;
	} else {
		CHECK(r[REG_RIP] == (long)fault_store);
		r[REG_RIP] = (long)after_store;
		r[REG_EFL] |= 1;
	}
}

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	pm = pm_create(argv[1], 4096);
	struct sigaction sa = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO };
	CHECK(sigaction(SIGSEGV, &sa, NULL) == 0);
	for (volatile int i = 0; i < 3; i++) {
		long loaded;
		unsigned char carry;
		__asm__ volatile("mov rbx, 0x1111\n\tmov r11, 0x2222\n\tmov rcx, 0x40\n\tcmp rbx, r11\n"
				 "fault_load:\n\tmov rax, qword ptr [rcx + 8]\n"
				 "after_load:\n\tmov qword ptr [%1], rbx\n\tmov %0, rax"
				 : "=r"(loaded) : "r"(pm + 2048) : "rax", "rbx", "rcx", "r11", "memory", "cc");
		CHECK(loaded == 0x1234);
		__asm__ volatile("mov rbx, 0x3333\n\tmov r11, 0x4444\n\tmov rcx, 0x80\n\txor eax, eax\n\tclc\n"
				 "fault_store:\n\tmov qword ptr [rcx + 16], rbx\n"
				 "after_store:\n\tsetc %0\n\tmov qword ptr [%1 + 8], r11"
				 : "=&r"(carry) : "r"(pm + 2048) : "rax", "rbx", "rcx", "r11", "memory", "cc");
		CHECK(carry == 1);
	}
	return 0;
}
