//! A growing array of two-word elements: realloc copies into another block and switches between two descriptors with one word.
//! variants: 9
//! together: 1 2 5 6 7 8 | 3 4 | 9
//! run: {bin} {pool} run
//! recover: {bin} {pool} check
#include "pm.h"

#define BLOCKS 8
#define CAPACITY(block) (UINT64_C(4) << (block) / 2)

struct element {
	uint64_t value;
	uint64_t check;
};

struct descriptor {
	uint64_t block;
	uint64_t capacity;
	uint64_t length;
} LINE_ALIGNED;

struct pool {
	uint64_t magic;
	uint64_t ack LINE_ALIGNED;
	uint64_t current LINE_ALIGNED;
	struct descriptor descriptors[2];
	/* A change of one element that is under way: `index` is its place + 1, and written last. */
	struct {
		uint64_t value;
		uint64_t index;
	} redo LINE_ALIGNED;
	uint64_t used[BLOCKS] LINE_ALIGNED;
	struct element blocks[BLOCKS][32] LINE_ALIGNED;
};

static uint64_t check_of(uint64_t value)
{
	return value * UINT64_C(0x9e3779b97f4a7c15) ^ 0x5a;
}

static struct descriptor *current(struct pool *p)
{
	return &p->descriptors[p->current];
}

static struct element *elements(struct pool *p)
{
	return p->blocks[current(p)->block];
}

/* Moves the elements into a free block of this capacity. */
static void resize(struct pool *p, uint64_t capacity)
{
	struct descriptor *old = current(p);
	struct descriptor *new = &p->descriptors[1 - p->current];
	uint64_t old_block = old->block;
	uint64_t block = 0;
	while (p->used[block] || CAPACITY(block) != capacity)
		block++;
	PUT(p->used[block], 1);
	persist(&p->used[block], 8);
	memcpy(p->blocks[block], p->blocks[old_block], old->length * sizeof(struct element)); //~ 1 ordering 3 durability
#if HAS_BUG(3)
	persist(p->blocks[block], old->length);
#elif !HAS_BUG(1)
	persist(p->blocks[block], old->length * sizeof(struct element));
#endif
#if HAS_BUG(5)
	PUT(p->used[old_block], 0); //~ 5 ordering
	persist(&p->used[old_block], 8);
#endif
#if HAS_BUG(4)
	(void)new;
	PUT(old->block, block); //~ 4 atomicity
	persist(&old->block, 8);
	PUT(old->capacity, capacity); //~ 4 atomicity
	persist(&old->capacity, 8);
#else
	PUT_NT(new->block, block);        //~ 2 ordering
	PUT_NT(new->capacity, capacity);  //~ 2 ordering
	PUT_NT(new->length, old->length); //~ 2 ordering
#if !HAS_BUG(2)
	fence();
#endif
	PUT(p->current, 1 - p->current); //~ 5 ordering
	persist(&p->current, 8);
#endif
#if HAS_BUG(1)
	persist(p->blocks[block], current(p)->length * sizeof(struct element));
#endif
	PUT(p->used[old_block], 0);
	persist(&p->used[old_block], 8);
}

static void push(struct pool *p, uint64_t value)
{
	if (current(p)->length == current(p)->capacity)
		resize(p, current(p)->capacity * 2);
	struct descriptor *d = current(p);
	struct element *e = &elements(p)[d->length];
	PUT(e->value, value);           //~ 7 ordering
	PUT(e->check, check_of(value)); //~ 7 ordering
#if HAS_BUG(7)
	flush(e, sizeof *e);
#else
	persist(e, sizeof *e);
#endif
	PUT(d->length, d->length + 1); //~ 6 durability
#if !HAS_BUG(6)
	persist(&d->length, 8);
#endif
}

static void pop(struct pool *p)
{
	struct descriptor *d = current(p);
	PUT(d->length, d->length - 1);
	persist(&d->length, 8);
}

static void apply_redo(struct pool *p)
{
	struct element *e = &elements(p)[p->redo.index - 1];
	PUT(e->value, p->redo.value);
	PUT(e->check, check_of(p->redo.value));
	persist(e, sizeof *e);
	PUT(p->redo.index, 0);
	persist(&p->redo.index, 8);
}

static void set(struct pool *p, uint64_t index, uint64_t value)
{
#if HAS_BUG(8)
	struct element *e = &elements(p)[index];
	PUT(e->value, value); //~ 8 atomicity
	PUT(e->check, check_of(value)); //~ 8 atomicity
	persist(e, sizeof *e);
#else
	PUT(p->redo.value, value);
	PUT(p->redo.index, index + 1);
	persist(&p->redo, sizeof p->redo);
	apply_redo(p);
#endif
}

/* p push, o pop, s set, k shrink. Elements move 4 to 8 to 16 to 32, back to 16, and up again into a block used before. */
static const char script[] = "ppspppsppppoopppppppppsppooooooooskspppppop";
#define OPERATIONS (sizeof script - 1)

static uint64_t value_of(uint64_t operation)
{
	return (operation + 1) * 1000003;
}

static void run(void *pm)
{
	struct pool *p = pm;
	PUT(p->used[0], 1);
	PUT(p->descriptors[0].capacity, CAPACITY(0));
	flush(&p->used[0], 8);
	persist(&p->descriptors[0], sizeof p->descriptors[0]);
	PUT(p->magic, POOL_MAGIC);
	persist(&p->magic, 8);
	for (uint64_t i = 0; i < OPERATIONS; i++) {
		switch (script[i]) {
		case 'p': push(p, value_of(i)); break;
		case 'o': pop(p); break;
		case 's': set(p, i % current(p)->length, value_of(i)); break;
		case 'k': resize(p, current(p)->capacity / 2); break;
		}
		PUT(p->ack, i + 1);
		persist(&p->ack, 8);
	}
}

/* What the array holds after `operations`. */
static uint64_t model(uint64_t operations, uint64_t *values)
{
	uint64_t length = 0;
	for (uint64_t i = 0; i < operations; i++)
		switch (script[i]) {
		case 'p': values[length++] = value_of(i); break;
		case 'o': length--; break;
		case 's': values[i % length] = value_of(i); break;
		}
	return length;
}

static int equals_model(struct pool *p, uint64_t operations)
{
	uint64_t values[OPERATIONS];
	if (operations > OPERATIONS || model(operations, values) != current(p)->length)
		return 0;
	for (uint64_t i = 0; i < current(p)->length; i++)
		if (elements(p)[i].value != values[i])
			return 0;
	return 1;
}

/* Blocks that a resize took and did not publish, or replaced and did not give back. */
static void free_lost_blocks(struct pool *p)
{
#if HAS_BUG(9)
	struct descriptor *owners[BLOCKS] = {0};
	owners[current(p)->block] = current(p);
#endif
	for (uint64_t block = 0; block < BLOCKS; block++) {
		if (!p->used[block] || block == current(p)->block)
			continue;
#if HAS_BUG(9)
		insist(*(volatile uint64_t *)&owners[block]->length <= CAPACITY(block), "a lost block is too full"); //~ 9 recovery
#endif
		PUT(p->used[block], 0);
		persist(&p->used[block], 8);
	}
}

static void check(void *pm)
{
	struct pool *p = pm;
	insist(p->current < 2, "no such descriptor");
	struct descriptor *d = current(p);
	insist(d->block < BLOCKS, "no such block");
	insist(d->capacity == CAPACITY(d->block), "the capacity is not that of the block");
	insist(d->length <= d->capacity, "more elements than fit");
	insist(p->used[d->block] == 1, "the array's block is free");
	if (p->redo.index) {
		insist(p->redo.index <= d->length, "a change beyond the end");
		apply_redo(p);
	}
	free_lost_blocks(p);
	for (uint64_t i = 0; i < d->length; i++)
		insist(elements(p)[i].check == check_of(elements(p)[i].value), "an element is torn");
	insist(equals_model(p, p->ack) || equals_model(p, p->ack + 1), "not what the finished operations left");
}

int main(int argc, char **argv)
{
	return pm_main(argc, argv, sizeof(struct pool), run, check);
}
