//@ build: c
//@ cflags: -O1 -mclwb -pthread
//@ needs: clwb
// clflush is ordered with the stores by itself: no fence is missing.
#include "pm.h"

int main(int argc, char **argv)
{
	uint64_t *slot = pm_create(argv[1]);
	PUT(slot[0], 1);
	_mm_clflush(slot);
	_exit(0);
}
