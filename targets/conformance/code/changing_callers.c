//@ build: c
//@ cflags: -O1 -fno-optimize-sibling-calls
// Stores by the same code at the same stack depth under many paths: siblings of a recursion, callers of several sizes, and frames that are found
// through rbp, whose place changes while all words further in stay as they were.
#include "pm.h"

#include <alloca.h>

static char *pm;

static __attribute__((noinline)) void put(int n)
{
	PUT(int, pm + 4 * (n & 1023), n);
	pm_flush(pm + 4 * (n & 1023));
}

/* A tree of depth n: each leaf and each node has its own path, and the innermost frames lie where those of its sibling lay. */
static __attribute__((noinline)) int tree(int n, int at)
{
	if (n == 0) {
		put(at);
		return 1;
	}
	int left = tree(n - 1, 2 * at);
	put(at);
	return left + tree(n - 1, 2 * at + 1);
}

/* Keeps no rbp of its own: its caller's frame is found through the rbp that the caller left. */
static __attribute__((noinline)) void plain(int n)
{
	put(n);
	put(n + 1);
}

static __attribute__((noinline, optimize("no-omit-frame-pointer"))) void takes(int bytes, int n)
{
	volatile char *room = alloca(bytes);
	room[0] = (char)n;
	plain(n);
}

static __attribute__((noinline)) void small(int bytes, int n)
{
	takes(bytes, n);
	__asm__ volatile("");
}

static __attribute__((noinline)) void large(int bytes, int n)
{
	volatile char room[64];
	room[0] = (char)n;
	takes(bytes, n);
	room[1] = room[0];
}

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	pm = pm_create(argv[1], 16384);
	CHECK(tree(7, 1) == 128);
	for (int n = 0; n < 40; n++) {
		small(16 + 16 * (n % 9), n);
		large(16 + 16 * (n % 7), n);
	}
	CHECK(tree(3, 1) == 8);
	return 0;
}
