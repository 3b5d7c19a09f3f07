//@ build: c
//@ cflags: -O1 -mclwb -pthread
//@ needs: clwb
// The fence completes the non-temporal store.
#include "pm.h"

int main(int argc, char **argv)
{
	long long *slot = pm_create(argv[1]);
	_mm_stream_si64(&slot[0], 1);
	_mm_sfence();
	_exit(0);
}
