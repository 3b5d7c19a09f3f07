//@ build: c
//@ cflags: -O2
// long double (ten bytes of sixteen are written), _Complex, bit-fields, __int128.
#include "pm.h"
#include <complex.h>

struct fields { unsigned a : 3, b : 11, c : 17; unsigned char d : 1; };

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	char *pm = pm_create(argv[1], 4096);
	volatile long double *ld = (volatile long double *)pm;
	ld[0] = 1.0L / 3;
	ld[1] = -ld[0];
	*(volatile double complex *)(pm + 64) = 1.0 + 2.0 * I;
	volatile struct fields *f = (volatile struct fields *)(pm + 128);
	f->a = 5;
	f->b = 1000;
	f->c = 70000;
	f->d = 1;
	*(volatile __int128 *)(pm + 192) = (__int128)1 << 100;
	pm_persist(pm);
	return 0;
}
