//@ build: c
//@ cflags: -O1 -mclwb -pthread
//@ needs: clwb
// The sum is built up in a register and stored once.
#include "pm.h"

int main(int argc, char **argv)
{
	uint64_t *sum = pm_create(argv[1]);
	uint64_t local = 0;
	for (int i = 0; i < 100; i++)
		local += i;
	PUT(*sum, local);
	PERSIST(sum);
	return 0;
}
