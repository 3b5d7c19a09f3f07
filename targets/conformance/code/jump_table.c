//@ build: c
//@ cflags: -O2
// Switches as jump tables and an interpreter with computed goto.
#include "pm.h"

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	char *pm = pm_create(argv[1], 4096);
	static const unsigned char program[] = { 0, 0, 1, 2, 3, 0, 4, 1, 2, 3, 3, 5 };
	static const void *const ops[] = { &&inc, &&dbl, &&put, &&dec, &&swap, &&end };
	long a = 1, b = 7, at = 0;
	const unsigned char *pc = program;
	goto *ops[*pc++];
inc:	a++; goto *ops[*pc++];
dbl:	a *= 2; goto *ops[*pc++];
put:	PUT(long, pm + 8 * at++, a); goto *ops[*pc++];
dec:	a--; goto *ops[*pc++];
swap:	{ long t = a; a = b; b = t; } goto *ops[*pc++];
end:
	for (int i = 0; i < 40; i++) {
		switch ((i * 7) % 11) {
		case 0: PUT(int, pm + 512, i); break;
		case 1: PUT(int, pm + 516, i); break;
		case 2: PUT(short, pm + 520, i); break;
		case 3: PUT(char, pm + 524, i); break;
		case 5: PUT(long, pm + 528, i); break;
		case 7: PUT(int, pm + 536, i); /* fall through */
		case 8: PUT(int, pm + 540, i); break;
		case 10: PUT(int, pm + 544, i); break;
		default: break;
		}
	}
	CHECK(at == 2);
	return 0;
}
