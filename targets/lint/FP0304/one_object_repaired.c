//@ build: c
//@ cflags: -O1 -mclwb -pthread
//@ needs: clwb
// The lines of one object, flushed by one loop: nobody expects an order among them.
#include "pm.h"

int main(int argc, char **argv)
{
	uint64_t *object = pm_create(argv[1]);
	for (int i = 0; i < 4 * LINE / 8; i++)
		PUT(object[i], i);
	for (int i = 0; i < 4 * LINE / 8; i += LINE / 8)
		_mm_clwb(&object[i]);
	_mm_sfence();
	return 0;
}
