//@ build: c
//@ cflags: -O1
// A function of our own chosen at load time (IFUNC), and a constructor and destructors that write PM.
#include "pm.h"

static char *pm;

static void put_plain(int n) { PUT(int, pm + 4 * n, n); }
static void put_other(int n) { PUT(int, pm + 4 * n, -n); }
static void (*resolve(void))(int)
{
	__builtin_cpu_init();
	return __builtin_cpu_supports("sse2") ? put_plain : put_other;
}
void put(int n) __attribute__((ifunc("resolve")));

static void __attribute__((constructor)) before(int argc, char **argv)
{
	CHECK(argc > 1);
	pm = pm_create(argv[1], 4096);
	PUT(int, pm + 512, 1);
}
static void __attribute__((destructor)) after(void) { PUT(int, pm + 520, 3); }
static void at_exit(void) { PUT(int, pm + 516, 2); }

int main(void)
{
	atexit(at_exit);
	for (int i = 1; i < 5; i++)
		put(i);
	CHECK(*(int *)(pm + 8) == 2);
	return 0;
}
