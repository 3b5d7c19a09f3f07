//@ build: c
//@ cflags: -O1 -no-pie -fno-pie -masm=intel
// Pools at absolute addresses: below 2 GiB (disp32, 32-bit address size) and far away (movabs).
#include "pm.h"

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	int fd = pm_file(argv[1], 8192);
	char *low = pm_map_at((void *)0x10000000, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED_NOREPLACE, fd, 0);
	char *far = pm_map_at((void *)0x234500000000, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED_NOREPLACE, fd, 4096);
	CHECK(low == (char *)0x10000000 && far == (char *)0x234500000000);
	__asm__ volatile("mov dword ptr ds:0x10000010, 0x1234\n\t"
			 "mov eax, 0x55\n\t"
			 "mov byte ptr ds:0x10000020, al\n\t"
			 "lock add dword ptr ds:0x10000010, eax\n\t"
			 "mov ecx, 0x10000000\n\t"
			 "mov dword ptr [ecx + 0x30], eax\n\t"
			 "mov edx, -4\n\t"
			 "mov word ptr [ecx + edx + 0x44], ax\n\t"
			 "movabs rax, 0x1122334455667788\n\t"
			 "movabs ds:0x234500000008, rax\n\t"
			 "movabs ds:0x234500000010, al\n\t"
			 "movabs ds:0x234500000014, eax\n\t"
			 "movabs ds:0x234500000018, ax\n\t"
			 "movabs ds:0x10000100, rax\n\t"
			 ::: "rax", "rcx", "rdx", "memory");
	CHECK(*(int *)(low + 0x10) == 0x1289 && *(int *)(low + 0x30) == 0x55);
	CHECK(*(long *)(far + 8) == 0x1122334455667788);
	return 0;
}
