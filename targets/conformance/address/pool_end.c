//@ build: c
//@ cflags: -O1
// The last bytes of a pool, and a file whose length is no multiple of the page: stores past its end vanish.
#include "pm.h"

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	char *pm = pm_create(argv[1], 5000);
	PUT(char, pm + 4999, 1);
	PUT(long, pm + 4992, 0x0102030405060708);
	PUT(int, pm + 4998, 0x11223344);
	PUT(int, pm + 5500, 7);
	memset(pm + 4900, 0x3c, 300);
	pm_persist(pm + 4999);
	return 0;
}
