//@ build: c
//@ cflags: -O1 -static-pie -fPIE
// A program without an interpreter lies among the mappings; its heap has room to grow all the same.
#include "pm.h"
#include <sys/syscall.h>

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	char *pm = pm_create(argv[1], 4096);
	for (int i = 0; i < 4; i++) {
		long now = syscall(SYS_brk, 0);
		long grown = syscall(SYS_brk, now + (8 << 20));
		PUT(long, pm + 8 * i, grown - now);
		*(volatile char *)(grown - 1) = 1;
	}
	return 0;
}
