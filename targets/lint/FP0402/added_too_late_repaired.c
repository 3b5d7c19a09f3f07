//@ build: c
//@ cflags: -O1 -lpmemobj
//@ rules: FP04
// TX_SET adds the field and then stores to it.
#include "obj.h"

int main(int argc, char **argv)
{
	PMEMobjpool *pool = obj_create(argv[1]);
	TOID(struct root) root = POBJ_ROOT(pool, struct root);
	TX_BEGIN(pool) {
		TX_SET(root, count, 1);
	} TX_END
	pmemobj_close(pool);
	return 0;
}
