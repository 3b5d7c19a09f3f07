//@ build: c
//@ cflags: -O1 -mclwb -pthread
//@ needs: clwb
// A value that is durable before the next one is stored is no dirty overwrite, however often that happens.
#include "pm.h"

int main(int argc, char **argv)
{
	uint64_t *sum = pm_create(argv[1]);
	for (int i = 0; i < 100; i++) {
		PUT(*sum, *sum + i);
		PERSIST(sum);
	}
	return 0;
}
