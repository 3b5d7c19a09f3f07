//@ explore: --bytes 8
/* A jump table, and another behind one of its cases. */
#include "solve.h"
static unsigned inner(const unsigned char *p)
{
	switch (p[1]) {
	case 0x40: return 3;
	case 0x41: return p[2] + 1u;
	case 0x42: return p[2] * 3u;
	case 0x43: return 17;
	case 0x44: return p[2] == 0x7e && p[3] == 0x57 ? 1000 : 18;
	case 0x45: return p[3];
	case 0x46: return 5;
	default: return 0;
	}
}

static unsigned outer(const unsigned char *p)
{
	switch (p[0]) {
	case 0x10: return 1;
	case 0x11: return p[1] + 2u;
	case 0x12: return p[2] * 2u;
	case 0x13: return 4;
	case 0x14: return inner(p);
	case 0x15: return p[3] ^ 5u;
	case 0x16: return 2;
	default: return 0;
	}
}

int main(int argc, char **argv)
{
	struct pool *pool = pool_open(argv[1]);
	unsigned char program[8] = {0};
	input(program, sizeof program);
	if (outer(program) == 1000) {
		PUT(pool->value[0], 1); //~ FP0101
		FLUSH_REPAIRED(pool->value[0]);
	}
	return argc - 2;
}
