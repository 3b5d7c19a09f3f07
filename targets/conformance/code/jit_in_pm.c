//@ build: c
//@ cflags: -O1
//@ compare: exact no-context
//@ refuses: executes code in a pool
// Code that lies in the pool itself, written and run there: its stores to PM rewrite PM, once its own next instruction.
#include "jit.h"

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	int fd = pm_file(argv[1], 8192);
	char *pm = pm_map_at(NULL, 8192, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_SHARED, fd, 0);
	for (int i = 0; i < 6; i++) {
		unsigned char code[32];
		size_t len = emit(code, 8 * i, i + 5, i);
		for (size_t b = 0; b < len; b++)
			PUT(unsigned char, pm + 4096 + b, code[b]);
		CHECK(((generated)(pm + 4096))(pm) == i);
	}
	unsigned char code[32];
	size_t len = emit(code, 4096 + 11, 0x66, 1);   /* changes the result that it returns next */
	for (size_t b = 0; b < len; b++)
		PUT(unsigned char, pm + 4096 + b, code[b]);
	CHECK(((generated)(pm + 4096))(pm) == 0x66);
	return 0;
}
