//@ build: c
//@ cflags: -O1 -mclwb
//@ needs: clwb
//@ args: --severity FP0501=note
// clflush throws the line out of the cache, although the program goes on using it, and is ordered with every other clflush.
#include "pm.h"

int main(int argc, char **argv)
{
	uint64_t *slot = pm_create(argv[1]);
	for (int i = 0; i < 4; i++) {
		PUT(slot[0], i + 1);
		_mm_clflush(slot); //~ FP0501
		_mm_sfence();
	}
	return 0;
}
