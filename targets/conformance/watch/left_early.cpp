//@ build: cxx
//@ cflags: -O1 -static-libstdc++ -static-libgcc
//@ args: --watch thrower --watch jumper --watch tail --watch target
// Watched functions that are left by an exception, by longjmp, or by a tail call into another watched one.
#include "pm.h"
#include <csetjmp>

static char *pm;
static jmp_buf out;

extern "C" {
__attribute__((noipa)) long thrower(long n, long, long, long, long, long)
{
	PUT(long, pm + 8 * n, n);
	if (n == 0)
		throw 5;
	return thrower(n - 1, 0, 0, 0, 0, 0) + 1;
}
__attribute__((noipa)) long jumper(long n, long, long, long, long, long)
{
	PUT(long, pm + 256 + 8 * n, n);
	if (n == 0)
		longjmp(out, 1);
	return jumper(n - 1, 0, 0, 0, 0, 0) + 1;
}
__attribute__((noipa)) long target(long n, long, long, long, long, long)
{
	PUT(long, pm + 512, n);
	return n + 1;
}
__attribute__((noipa, optimize("O2"))) long tail(long n, long b, long c, long d, long e, long f)
{
	PUT(long, pm + 520, n);
	return target(n * 2, b, c, d, e, f);
}
}

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	pm = pm_create(argv[1], 4096);
	for (int i = 0; i < 2; i++) {
		try {
			thrower(3, 0, 0, 0, 0, 0);
		} catch (int) {
			PUT(int, pm + 1024, i);
		}
		if (setjmp(out) == 0)
			jumper(2, 0, 0, 0, 0, 0);
	}
	CHECK(tail(4, 0, 0, 0, 0, 0) == 9);
	CHECK(target(1, 0, 0, 0, 0, 0) == 2);
	return 0;
}
