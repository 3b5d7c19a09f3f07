//@ build: c
//@ cflags: -O1 -mclwb -pthread
//@ needs: clwb
// The sum is built up in PM: no value but the last was ever durable.
#include "pm.h"

int main(int argc, char **argv)
{
	uint64_t *sum = pm_create(argv[1]);
	for (int i = 0; i < 100; i++)
		PUT(*sum, *sum + i); //~ FP0302
	PERSIST(sum);
	return 0;
}
