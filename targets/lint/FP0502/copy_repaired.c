//@ build: c
//@ cflags: -O1 -mclwb
//@ needs: clwb
//@ args: --severity FP0502=note
// Non-temporal stores bypass the cache and need no flush.
#include "pm.h"

#define WORDS 1024

int main(int argc, char **argv)
{
	long long *pm = pm_create(argv[1]);
	for (int i = 0; i < WORDS; i++)
		_mm_stream_si64(&pm[i], i);
	_mm_sfence();
	return 0;
}
