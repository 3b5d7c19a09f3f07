//@ build: c
//@ cflags: -O1 -mclwb -pthread
//@ needs: clwb
// The fence alone completes non-temporal stores.
#include "pm.h"

int main(int argc, char **argv)
{
	long long *slot = pm_create(argv[1]);
	for (int i = 0; i < 8; i++)
		_mm_stream_si64(&slot[i], i);
	_mm_sfence();
	return 0;
}
