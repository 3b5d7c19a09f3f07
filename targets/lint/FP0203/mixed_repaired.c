//@ build: c
//@ cflags: -O1 -mclwb -pthread
//@ needs: clwb
// A line with a plain store among the non-temporal ones needs its flush.
#include "pm.h"

int main(int argc, char **argv)
{
	long long *slot = pm_create(argv[1]);
	for (int i = 0; i < 7; i++)
		_mm_stream_si64(&slot[i], i);
	PUT(slot[7], 7);
	_mm_clwb(slot);
	_mm_sfence();
	return 0;
}
