/*
 * A stack in a libpmemobj pool, for the tutorial.
 *
 *   stack POOL push NUMBER... | verify
 *
 * The bug: the transaction does not know of `count`, so that a crash rolls back the push but not the count. -DREPAIRED adds it.
 */
#include <libpmemobj.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

POBJ_LAYOUT_BEGIN(stack);
POBJ_LAYOUT_ROOT(stack, struct stack);
POBJ_LAYOUT_TOID(stack, struct node);
POBJ_LAYOUT_END(stack);

struct node {
	uint64_t value;
	TOID(struct node) next;
};

struct stack {
	TOID(struct node) top;
	uint64_t unused[6];
	uint64_t count;
};

static void push(PMEMobjpool *pool, TOID(struct stack) stack, uint64_t value)
{
	TX_BEGIN(pool) {
		TOID(struct node) node = TX_NEW(struct node);
		D_RW(node)->value = value;
		D_RW(node)->next = D_RO(stack)->top;
		TX_ADD_FIELD(stack, top);
		D_RW(stack)->top = node;
#ifdef REPAIRED
		TX_ADD_FIELD(stack, count);
#endif
		D_RW(stack)->count++;
	} TX_ONABORT {
		abort();
	} TX_END
}

static int verify(TOID(struct stack) stack)
{
	uint64_t found = 0;
	for (TOID(struct node) node = D_RO(stack)->top; !TOID_IS_NULL(node); node = D_RO(node)->next)
		found++;
	printf("%lu of %lu\n", (unsigned long)found, (unsigned long)D_RO(stack)->count);
	return found == D_RO(stack)->count ? 0 : 1;
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	PMEMobjpool *pool = pmemobj_open(argv[1], POBJ_LAYOUT_NAME(stack));
	if (pool == NULL)
		pool = pmemobj_create(argv[1], POBJ_LAYOUT_NAME(stack), PMEMOBJ_MIN_POOL, 0644);
	if (pool == NULL) {
		perror(argv[1]);
		return 2;
	}
	TOID(struct stack) stack = POBJ_ROOT(pool, struct stack);
	if (strcmp(argv[2], "verify") == 0)
		return verify(stack);
	for (int i = 3; i < argc; i++)
		push(pool, stack, strtoull(argv[i], NULL, 10));
	pmemobj_close(pool);
	return 0;
}
