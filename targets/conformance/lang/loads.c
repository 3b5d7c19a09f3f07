//@ build: c
//@ cflags: -O1 -no-pie
//@ args: --loads
// Loads from a pool: of every plain width, through a read-modify-write, as the source of a string copy, and of a function pointer.
#include "pm.h"
#include <string.h>

static int twice(int x) { return 2 * x; }

struct root { unsigned char c; unsigned short s; unsigned i; unsigned long l; int (*f)(int); char text[64]; };

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	volatile struct root *r = (volatile struct root *)pm_create(argv[1], 4096);
	r->c = 1;
	r->s = 2;
	r->i = 3;
	r->l = 4;
	r->f = twice;
	CHECK(r->c + r->s + r->i + r->l == 10);
	r->l += 5;
	CHECK(r->l == 9 && r->f(21) == 42);
	char copy[64];
	const char *from = (const char *)r->text;
	char *to = copy;
	unsigned long n = sizeof copy;
	__asm__ volatile("rep movsb" : "+S"(from), "+D"(to), "+c"(n) : : "memory");
	CHECK(copy[0] == 0);
	return 0;
}
