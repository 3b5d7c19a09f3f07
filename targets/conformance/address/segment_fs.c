//@ build: c
//@ cflags: -O1 -masm=intel
// A store through fs: whose offset leads from the thread's TLS into the pool.
#include "pm.h"

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	char *pm = pm_create(argv[1], 4096);
	char *base;
	__asm__("mov %0, fs:0" : "=r"(base));
	long away = pm - base;
	__asm__ volatile("mov dword ptr fs:[%0 + 8], 0x77\n\t"
			 "lock inc dword ptr fs:[%0 + 8]\n\t"
			 "mov qword ptr fs:[%0 + %1*8], 5"
			 :: "r"(away), "r"(4L) : "memory");
	CHECK(*(int *)(pm + 8) == 0x78 && pm[32] == 5);
	return 0;
}
