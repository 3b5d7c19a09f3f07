//@ build: c
//@ cflags: -O1
// Signals read from a signalfd, through poll, into memory and into PM.
#include "pm.h"
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	char *pm = pm_create(argv[1], 4096);
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGUSR2);
	CHECK(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
	int fd = signalfd(-1, &set, SFD_CLOEXEC);
	CHECK(fd >= 0);
	raise(SIGUSR2);
	raise(SIGUSR1);
	struct pollfd p = { fd, POLLIN, 0 };
	CHECK(poll(&p, 1, -1) == 1);
	struct signalfd_siginfo info;
	for (int i = 0; i < 2; i++) {
		CHECK(read(fd, &info, sizeof info) == sizeof info);
		PUT(int, pm + 4 * i, info.ssi_signo);
	}
	CHECK(poll(&p, 1, 0) == 0);
	return 0;
}
