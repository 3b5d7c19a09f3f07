//@ build: c
//@ cflags: -O1 -mclwb -pthread
//@ needs: clwb
// A non-temporal store waits in a write-combining buffer until a fence.
#include "pm.h"

int main(int argc, char **argv)
{
	long long *slot = pm_create(argv[1]);
	_mm_stream_si64(&slot[0], 1); //~ FP0103
	_exit(0);
}
