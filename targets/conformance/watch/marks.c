//@ build: c
//@ cflags: -O1
// Marks of operations: one after the other, one that is not ended before the next begins, one that calls, one that never ends.
#include "pm.h"
#include "../../../marks/fencepost.h"

static char *pm;

__attribute__((noipa)) static void put(long at)
{
	PUT(long, pm + 8 * at, at);
}

__attribute__((noipa)) static void marked(long at)
{
	FENCEPOST_OPERATION_BEGIN();
	put(at);
	FENCEPOST_OPERATION_END();
}

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	pm = pm_create(argv[1], 4096);
	FENCEPOST_OPERATION_END();
	for (long at = 0; at < 40; at++)
		marked(at);
	FENCEPOST_OPERATION_BEGIN();
	put(50);
	FENCEPOST_OPERATION_BEGIN();
	put(51);
	marked(52);
	FENCEPOST_OPERATION_BEGIN();
	put(53);
	return 0;
}
