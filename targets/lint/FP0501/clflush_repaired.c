//@ build: c
//@ cflags: -O1 -mclwb
//@ needs: clwb
//@ args: --severity FP0501=note
// clwb leaves the line in the cache.
#include "pm.h"

int main(int argc, char **argv)
{
	uint64_t *slot = pm_create(argv[1]);
	for (int i = 0; i < 4; i++) {
		PUT(slot[0], i + 1);
		_mm_clwb(slot);
		_mm_sfence();
	}
	return 0;
}
