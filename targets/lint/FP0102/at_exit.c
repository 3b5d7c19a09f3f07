//@ build: c
//@ cflags: -O1 -mclwb -pthread
//@ needs: clwb
// The flush has no fence behind it; _exit, so that no locked instruction of the C library stands in for one.
#include "pm.h"

int main(int argc, char **argv)
{
	uint64_t *slot = pm_create(argv[1]);
	PUT(slot[0], 1);
	_mm_clwb(slot); //~ FP0102
	_exit(0);
}
