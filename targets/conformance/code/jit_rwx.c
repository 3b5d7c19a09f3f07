//@ build: c
//@ cflags: -O1
//@ args: --pm *.pool
//@ compare: exact no-context
// Generated code on a page that is writable and executable, rewritten in place again and again: whole, and one byte of it.
#include "jit.h"

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	char *pm = pm_create(argv[1], 4096);
	unsigned char *code = (unsigned char *)pm_map_at(NULL, 8192, PROT_READ | PROT_WRITE | PROT_EXEC,
							  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	generated f = (generated)code;
	for (int i = 0; i < 20; i++) {
		emit(code, 4 * i, i + 1, i + 100);
		CHECK(f(pm) == i + 100);
		code[6] = 77;                              /* the low byte of the stored value */
		CHECK(f(pm) == i + 100 && *(int *)(pm + 4 * i) == 77);
	}
	/* A function across the page border, changed on the second page only. */
	f = (generated)(code + 4096 - 8);
	for (int i = 0; i < 5; i++) {
		emit((unsigned char *)f, 512 + 4 * i, 9, i);
		CHECK(f(pm) == i);
		code[4096 - 8 + 11] = (unsigned char)(i + 50);
		CHECK(f(pm) == i + 50);
	}
	return 0;
}
