/* Every timer that goes off moves the virtual clock to where it was set, however the program waits for it. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define CHECK(cond)                                                                              \
	do {                                                                                     \
		if (!(cond)) {                                                                   \
			fprintf(stderr, "line %d: not so: %s (errno %d)\n", __LINE__, #cond, errno); \
			exit(1);                                                                 \
		}                                                                                \
	} while (0)
#define MS 1000000L
#define WAIT (30 * MS)

static long now(int clock)
{
	struct timespec t;
	CHECK(clock_gettime(clock, &t) == 0);
	return t.tv_sec * 1000000000L + t.tv_nsec;
}

static long before;
static void begin(void) { before = now(CLOCK_MONOTONIC); }
static void passed(const char *what, long least, long most)
{
	long ns = now(CLOCK_MONOTONIC) - before;
	if (ns < least - MS || ns > most) {
		fprintf(stderr, "%s moved the clock by %ld ns\n", what, ns);
		exit(1);
	}
}
static void end(const char *what) { passed(what, WAIT, 20000 * MS); }
#define WAITS(what, call) do { begin(); CHECK(call); end(what); } while (0)
/* Natively the machine may be busy; the virtual clock shows what the timer was set to, and not the real time as well. */
static int recorded;
#define EXACTLY(what, ns, call) \
	do { begin(); CHECK(call); passed(what, ns, recorded ? (ns) * 3 / 2 : 20000 * MS); } while (0)

static pthread_barrier_t all;
static void *sleeper(void *unused)
{
	struct timespec time = { 0, 200 * MS };
	pthread_barrier_wait(&all);
	CHECK(nanosleep(&time, NULL) == 0);
	CHECK(ppoll(NULL, 0, &time, NULL) == 0);
	return unused;
}

static volatile int rang;
static void ring(int sig) { rang = sig; }

int main(int argc, char **argv)
{
	recorded = argc > 1 && argv[1][0] == 'r';
	int poller = epoll_create1(0);
	struct epoll_event event = { .events = EPOLLIN };
	long until;
	struct itimerspec once = { { 0, 0 }, { 0, WAIT } }, often = { { 0, WAIT }, { 0, WAIT } };
	uint64_t times;
	int timer = timerfd_create(CLOCK_MONOTONIC, 0);
	WAITS("timerfd", timerfd_settime(timer, 0, &once, NULL) == 0 && read(timer, &times, 8) == 8 && times == 1);
	CHECK(epoll_ctl(poller, EPOLL_CTL_ADD, timer, &event) == 0);
	WAITS("timerfd and epoll", timerfd_settime(timer, 0, &often, NULL) == 0 && epoll_wait(poller, &event, 1, -1) == 1);
	until = now(CLOCK_MONOTONIC) + WAIT;
	struct itimerspec at = { { 0, 0 }, { until / 1000000000, until % 1000000000 } };
	WAITS("timerfd until", timerfd_settime(timer, TFD_TIMER_ABSTIME, &at, NULL) == 0 && read(timer, &times, 8) == 8);

	signal(SIGALRM, ring);
	struct itimerval alarm_once = { { 0, 0 }, { 0, 30000 } };
	EXACTLY("setitimer and pause", WAIT, setitimer(ITIMER_REAL, &alarm_once, NULL) == 0 && pause() == -1 && rang == SIGALRM);
	timer_t posix;
	CHECK(timer_create(CLOCK_MONOTONIC, NULL, &posix) == 0);
	rang = 0;
	sigset_t none;
	sigemptyset(&none);
	EXACTLY("timer_create and sigsuspend", WAIT, timer_settime(posix, 0, &once, NULL) == 0 && sigsuspend(&none) == -1 && rang == SIGALRM);
	rang = 0;
	EXACTLY("alarm and poll", 1000 * MS, alarm(1) == 0 && poll(NULL, 0, -1) == -1 && errno == EINTR && rang);
	rang = 0;
	begin();
	CHECK(setitimer(ITIMER_REAL, &alarm_once, NULL) == 0);
	while (!rang)
		;
	end("setitimer and a loop");

	/* Threads that sleep at the same time: not the sum of it. */
	enum { THREADS = 8 };
	pthread_t threads[THREADS];
	CHECK(pthread_barrier_init(&all, NULL, THREADS) == 0);
	begin();
	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_create(&threads[i], NULL, sleeper, NULL) == 0);
	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	passed("threads", 400 * MS, THREADS * 400 * MS - 1);

	/* Asking over and over, and computing for long between two questions. */
	begin();
	while (now(CLOCK_MONOTONIC) < before + 1000 * MS)
		;
	volatile unsigned long sum = 0;
	long cpu = now(CLOCK_THREAD_CPUTIME_ID), rounds = 0;
	do {
		for (long i = 0; i < 100000000; i++)
			sum += i;
		rounds++;
	} while (now(CLOCK_THREAD_CPUTIME_ID) < cpu + 20 * MS);
	CHECK(rounds < 5);
	return 0;
}
