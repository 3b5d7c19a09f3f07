//@ build: c
//@ cflags: -O1
//@ compare: exact no-context
// makecontext and swapcontext: two coroutines on stacks of their own. A coroutine has no caller that will see it return, so
// whether the C library's start frame belongs to its path is a matter of taste, and paths are not compared.
#include "pm.h"
#include <ucontext.h>

static char *pm;
static ucontext_t base, first, second;
static int next;

static void run(int id, int rounds)
{
	for (int i = 0; i < rounds; i++) {
		PUT(int, pm + 4 * next++, id * 100 + i);
		CHECK(swapcontext(id == 1 ? &first : &second, id == 1 ? &second : &first) == 0);
	}
	PUT(int, pm + 4 * next++, id * 1000);
}

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	pm = pm_create(argv[1], 4096);
	getcontext(&first);
	getcontext(&second);
	first.uc_stack.ss_sp = malloc(65536);
	first.uc_stack.ss_size = 65536;
	first.uc_link = &base;
	second.uc_stack.ss_sp = malloc(65536);
	second.uc_stack.ss_size = 65536;
	second.uc_link = &base;
	makecontext(&first, (void (*)(void))run, 2, 1, 5);
	makecontext(&second, (void (*)(void))run, 2, 2, 7);
	CHECK(swapcontext(&base, &first) == 0);
	PUT(int, pm + 4 * next++, 7);
	CHECK(next == 12);
	return 0;
}
