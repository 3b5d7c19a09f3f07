//@ build: c
//@ cflags: -O1
// What must stay native: cpuid, environment, arguments, uname, page size, the exit handlers' order.
#include "pm.h"
#include <cpuid.h>
#include <sys/auxv.h>

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	char *pm = pm_create(argv[1], 4096);
	unsigned a, b, c, d;
	CHECK(__get_cpuid(0, &a, &b, &c, &d));
	PUT(unsigned, pm, b);
	CHECK(__get_cpuid_count(7, 0, &a, &b, &c, &d));
	PUT(unsigned, pm + 4, b);
	PUT(long, pm + 8, sysconf(_SC_PAGESIZE));
	PUT(int, pm + 16, argc);
	PUT(long, pm + 24, getauxval(AT_HWCAP));
	PUT(long, pm + 32, getauxval(AT_PAGESZ));
	PUT(int, pm + 40, getuid());
	strcpy(pm + 64, argv[1]);
	return 0;
}
