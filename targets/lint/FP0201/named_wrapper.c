//@ build: c
//@ cflags: -O1 -mclwb -pthread
//@ needs: clwb
//@ args: --wrapper save_*
// A function that stores as well is no wrapper by itself; the user says that it is one.
#include "pm.h"

__attribute__((noinline)) static void save_word(uint64_t *to, uint64_t value)
{
	if (*to != value)
		PUT(*to, value);
	_mm_clwb(to);
	_mm_sfence();
}

int main(int argc, char **argv)
{
	uint64_t *slot = pm_create(argv[1]);
	save_word(slot, 1);
	save_word(slot + 8, 1);
	save_word(slot, 1); //~ FP0201
	return 0;
}
