//@ build: c
//@ cflags: -O1 -mclwb -pthread
//@ needs: clwb
// A fence on purpose is one, wherever it stands.
#include "pm.h"

__attribute__((destructor)) static void last(void)
{
	_mm_sfence();
}

int main(int argc, char **argv)
{
	uint64_t *slot = pm_create(argv[1]);
	PUT(slot[0], 1);
	_mm_clwb(slot);
	_exit((last(), 0));
}
