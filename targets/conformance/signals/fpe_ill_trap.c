//@ build: c
//@ cflags: -O1 -masm=intel -no-pie -fno-pie
// SIGFPE from a division, SIGILL from ud2, SIGBUS behind the end of a file: exact pc, code and address.
#include "pm.h"
#include <signal.h>
#include <ucontext.h>

static char *pm;
static volatile int next;
static volatile long skip_to;
extern char at_div[], behind_div[], at_ud[], behind_ud[], at_bus[], behind_bus[];

static void handler(int sig, siginfo_t *info, void *raw)
{
	greg_t *r = ((ucontext_t *)raw)->uc_mcontext.gregs;
	PUT(int, pm + 4 * next++, sig);
	PUT(int, pm + 4 * next++, info->si_code);
	PUT(int, pm + 4 * next++, r[REG_RIP]);
	PUT(int, pm + 4 * next++, r[REG_RDX]);
	if (sig != SIGBUS)
		CHECK((long)info->si_addr == r[REG_RIP]);
	r[REG_RIP] = skip_to;
}

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	pm = pm_create(argv[1], 4096);
	int fd = pm_file("short.dat", 100);
	char *short_map = pm_map_at(NULL, 8192, PROT_READ, MAP_SHARED, fd, 0);
	struct sigaction sa = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO };
	CHECK(sigaction(SIGFPE, &sa, NULL) == 0);
	CHECK(sigaction(SIGILL, &sa, NULL) == 0);
	CHECK(sigaction(SIGBUS, &sa, NULL) == 0);
	skip_to = (long)behind_div;
	__asm__ volatile("mov edx, 0\n\tmov eax, 5\n\txor ecx, ecx\nat_div:\n\tdiv ecx\nbehind_div:\n\tmov dword ptr [%0], eax"
			 :: "r"(pm + 1024) : "rax", "rcx", "rdx", "memory", "cc");
	skip_to = (long)behind_ud;
	__asm__ volatile("mov edx, 77\nat_ud:\n\tud2\nbehind_ud:\n\tmov dword ptr [%0], edx"
			 :: "r"(pm + 1032) : "rdx", "memory", "cc");
	skip_to = (long)behind_bus;
	__asm__ volatile("mov edx, 78\nat_bus:\n\tmov al, byte ptr [%1]\nbehind_bus:\n\tmov dword ptr [%0], edx"
			 :: "r"(pm + 1040), "r"(short_map + 4096) : "rax", "rdx", "memory", "cc");
	CHECK(next == 12 && *(int *)(pm + 8) == (int)(long)at_div && *(int *)(pm + 24) == (int)(long)at_ud);
	CHECK(*(int *)(pm + 40) == (int)(long)at_bus);
	return 0;
}
