//@ build: c
//@ cflags: -O1
// A program that write-protects its own pool to learn of the first store to each page: its handler must get
// exactly those faults, with the address it wrote to, and the store is recorded once.
#include "pm.h"
#include <signal.h>

static char *pm;
static volatile int faults;

static void handler(int sig, siginfo_t *info, void *raw)
{
	(void)sig, (void)raw;
	char *page = (char *)((uintptr_t)info->si_addr & ~4095ul);
	CHECK(info->si_code == SEGV_ACCERR && page >= pm && page < pm + 16384);
	CHECK(((uintptr_t)info->si_addr & 4095) == 8);
	faults++;
	CHECK(mprotect(page, 4096, PROT_READ | PROT_WRITE) == 0);
}

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	pm = pm_create(argv[1], 16384);
	struct sigaction sa = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO };
	CHECK(sigaction(SIGSEGV, &sa, NULL) == 0);
	for (int round = 0; round < 3; round++) {
		CHECK(mprotect(pm, 16384, PROT_READ) == 0);
		for (int page = 0; page < 4; page++) {
			PUT(int, pm + 4096 * page + 8, round * 10 + page);
			PUT(int, pm + 4096 * page + 12, 5);
			__atomic_fetch_add((int *)(pm + 4096 * page + 16), 1, __ATOMIC_SEQ_CST);
		}
		CHECK(faults == 4 * (round + 1));
		pm_persist(pm + 8);
	}
	return 0;
}
