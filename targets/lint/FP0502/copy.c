//@ build: c
//@ cflags: -O1 -mclwb
//@ needs: clwb
//@ args: --severity FP0502=note
// Two pages are copied through the cache and flushed line by line.
#include "pm.h"

#define WORDS 1024

int main(int argc, char **argv)
{
	uint64_t *pm = pm_create(argv[1]);
	for (int i = 0; i < WORDS; i++)
		PUT(pm[i], i);
	for (int i = 0; i < WORDS; i += LINE / 8)
		_mm_clwb(&pm[i]); //~ FP0502
	_mm_sfence();
	return 0;
}
