//@ build: c
//@ cflags: -O1
//@ pool: varies
// The clocks go on, never back, and alike in every recording: clock_gettime, gettimeofday, time, and sleeping in between.
#include "pm.h"
#include <sys/time.h>
#include <time.h>

static long nanoseconds(clockid_t clock)
{
	struct timespec t;
	CHECK(clock_gettime(clock, &t) == 0 && t.tv_nsec >= 0 && t.tv_nsec < 1000000000);
	return t.tv_sec * 1000000000L + t.tv_nsec;
}

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	char *pm = pm_create(argv[1], 4096);
	long before = nanoseconds(CLOCK_MONOTONIC), wall = nanoseconds(CLOCK_REALTIME);
	PUT(long, pm, before);
	PUT(long, pm + 8, wall);
	CHECK(wall > 1700000000L * 1000000000L);
	struct timespec nap = { 0, 5000000 };
	CHECK(nanosleep(&nap, NULL) == 0);
	long after = nanoseconds(CLOCK_MONOTONIC);
	CHECK(after - before >= 5000000);
	PUT(long, pm + 16, after);
	CHECK(clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, NULL) == 0);
	PUT(long, pm + 24, nanoseconds(CLOCK_MONOTONIC_RAW));
	PUT(long, pm + 32, nanoseconds(CLOCK_BOOTTIME));
	struct timeval tv;
	CHECK(gettimeofday(&tv, NULL) == 0);
	PUT(long, pm + 40, tv.tv_sec * 1000000L + tv.tv_usec);
	PUT(long, pm + 48, time(NULL));
	CHECK(clock_gettime(CLOCK_REALTIME, (struct timespec *)(pm + 64)) == 0);
	CHECK(usleep(1000) == 0);
	long last = nanoseconds(CLOCK_REALTIME);
	CHECK(last - wall >= 11000000);
	PUT(long, pm + 80, last);
	return 0;
}
