//@ build: c
//@ cflags: -O1
//@ pool: varies
//@ compare: lengths
// Every wait with a time limit moves the clock by what was waited. (Timers: crates/record/tests/recorders/timers.rs.)
#include "pm.h"
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ipc.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>

#define MS 1000000L
#define WAIT (30 * MS)

static long now(int clock)
{
	struct timespec t;
	CHECK(clock_gettime(clock, &t) == 0);
	return t.tv_sec * 1000000000L + t.tv_nsec;
}

static char *pm;
static int step;
static long before;

static void begin(void) { before = now(CLOCK_MONOTONIC); }
/* The clock moved by the wait, and not by much more: these machines are busy. */
static void end(const char *what)
{
	long passed = now(CLOCK_MONOTONIC) - before;
	if (passed < WAIT - MS || passed > 20000 * MS) {
		fprintf(stderr, "%s moved the clock by %ld ns\n", what, passed);
		_exit(1);
	}
	PUT(int, pm + 4 * step++, (int)(passed / WAIT));
}

#define WAITS(what, call) do { begin(); CHECK(call); end(what); } while (0)

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	pm = pm_create(argv[1], 4096);
	struct timespec time = { 0, WAIT }, t;
	struct timeval tv;
	int ends[2], quiet = eventfd(0, 0), poller = epoll_create1(0);
	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0 && quiet >= 0 && poller >= 0);
	struct epoll_event event = { .events = EPOLLIN };
	CHECK(epoll_ctl(poller, EPOLL_CTL_ADD, quiet, &event) == 0);
	struct pollfd p = { .fd = quiet, .events = POLLIN };

	WAITS("poll", poll(&p, 1, 30) == 0);
	WAITS("ppoll", ppoll(&p, 1, &time, NULL) == 0);
	WAITS("epoll_wait", epoll_wait(poller, &event, 1, 30) == 0);
	WAITS("epoll_pwait", epoll_pwait(poller, &event, 1, 30, NULL) == 0);
	t = time;
	WAITS("epoll_pwait2", syscall(441, poller, &event, 1, &t, NULL, 8) == 0);
	tv = (struct timeval){ 0, 30000 };
	WAITS("select", select(0, NULL, NULL, NULL, &tv) == 0);
	WAITS("pselect6", pselect(0, NULL, NULL, NULL, &time, NULL) == 0);
	WAITS("nanosleep", nanosleep(&time, NULL) == 0);
	int clocks[] = { CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_BOOTTIME, CLOCK_TAI };
	for (int i = 0; i < 4; i++)
		WAITS("clock_nanosleep", clock_nanosleep(clocks[i], 0, &time, NULL) == 0);
	long until = now(CLOCK_REALTIME) + WAIT;
	t = (struct timespec){ until / 1000000000, until % 1000000000 };
	WAITS("clock_nanosleep until", clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &t, NULL) == 0);
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	WAITS("sigtimedwait", sigtimedwait(&set, NULL, &time) == -1 && errno == EAGAIN);
	unsigned word = 1;
	WAITS("futex", syscall(SYS_futex, &word, FUTEX_WAIT, 1, &time, 0, 0) == -1 && errno == ETIMEDOUT);
	tv = (struct timeval){ 0, 30000 };
	CHECK(setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof tv) == 0);
	char byte;
	WAITS("recv with SO_RCVTIMEO", recv(ends[0], &byte, 1, 0) == -1 && errno == EAGAIN);
	WAITS("read with SO_RCVTIMEO", read(ends[0], &byte, 1) == -1 && errno == EAGAIN);
	int sem = semget(IPC_PRIVATE, 1, 0600);
	if (sem >= 0) {
		struct sembuf down = { 0, -1, 0 };
		WAITS("semtimedop", semtimedop(sem, &down, 1, &time) == -1 && errno == EAGAIN);
		semctl(sem, 0, IPC_RMID);
	}

	/* Asking over and over. */
	begin();
	while (now(CLOCK_MONOTONIC) < before + 100 * MS)
		;
	PUT(int, pm + 2048, 1);
	return 0;
}
