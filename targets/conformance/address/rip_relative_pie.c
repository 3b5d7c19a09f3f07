//@ build: c
//@ cflags: -O2 -fPIE -pie
// A pool mapped over a static array: the compiler addresses it relative to rip (PIE) or absolutely (non-PIE).
#include "pm.h"

static char area[65536] __attribute__((aligned(4096)));

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	int fd = pm_file(argv[1], sizeof area);
	pm_map_at(area, sizeof area, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
	for (int i = 0; i < 3; i++) {
		PUT(char, area, 1 + i);
		PUT(short, area + 2, 2 + i);
		PUT(int, area + 0x1ffe, 3 + i);
		PUT(long, area + 8 + 8 * i, 4);
		__asm__ volatile("addl $5, %0\n\tlock incl %1" : "+m"(*(int *)(area + 64)), "+m"(*(int *)(area + 128)));
		__asm__ volatile("clflush %0\n\tsfence" : "+m"(area[64]));
	}
	CHECK(area[64] == 15 && area[128] == 3);
	return 0;
}
