//@ build: c
//@ cflags: -O1 -lpmemobj
//@ rules: FP04
// The program ends well, and the change is rolled back when the pool is opened again.
#include "obj.h"

int main(int argc, char **argv)
{
	PMEMobjpool *pool = obj_create(argv[1]);
	TOID(struct root) root = POBJ_ROOT(pool, struct root);
	pmemobj_tx_begin(pool, NULL, TX_PARAM_NONE); //~ FP0404
	pmemobj_tx_add_range_direct(&D_RW(root)->count, sizeof(uint64_t));
	PUT(D_RW(root)->count, 1);
	return 0;
}
