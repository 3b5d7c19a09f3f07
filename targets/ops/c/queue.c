//! A queue in a ring that grows: head and tail count for ever, a full ring is copied into one of twice the size.
//! variants: 6
//! grammar: queue.toml
//! bug 1: wrong item — what was in the slot before, enqueue
//! bug 2: lost items — a ring that was not copied, enqueue that grows
//! bug 3: duplicated item — it comes out again, dequeue
//! bug 4: wrong items — a half-done compaction, enqueue that grows
//! bug 5: wrong count, enqueue and dequeue
//! bug 6: wrong item — 0, dequeue
#include "ops.h"

/* Ring n has 4 * 2^n slots, and the smaller rings lie before it. */
#define RINGS 11

struct pool {
	uint64_t magic;
	uint64_t ring LINE_ALIGNED;
	uint64_t head LINE_ALIGNED;
	uint64_t tail LINE_ALIGNED;
	uint64_t count LINE_ALIGNED;
	uint64_t slots[4 << RINGS] LINE_ALIGNED;
};

static struct pool *p;

static uint64_t size_of(uint64_t ring)
{
	return UINT64_C(4) << ring;
}

static uint64_t *slot(uint64_t ring, uint64_t number)
{
	return &p->slots[size_of(ring) + (number & (size_of(ring) - 1))];
}

static void grow(void)
{
	uint64_t next = p->ring + 1, base = HAS_BUG(4) ? p->head : 0;
	for (uint64_t i = p->head; i < p->tail; i++)
		PUT(*slot(next, i - base), *slot(p->ring, i)); //~ 2 ordering
	flush(slot(next, 0), size_of(next) * 8);
	if (!HAS_BUG(2))
		fence();
	PUT(p->ring, next); //~ 4 atomicity
	persist(&p->ring, 8);
	if (HAS_BUG(4)) {
		PUT(p->tail, p->tail - base); //~ 4 atomicity
		persist(&p->tail, 8);
		PUT(p->head, 0); //~ 4 atomicity
		persist(&p->head, 8);
	}
}

static enum answer enqueue(uint64_t value)
{
	if (p->tail - p->head == size_of(p->ring)) {
		if (p->ring + 2 == RINGS)
			return FULL;
		grow();
	}
	uint64_t *at = slot(p->ring, p->tail);
	PUT(*at, value); //~ 1 ordering
	flush(at, 8);
	if (!HAS_BUG(1))
		fence();
	PUT(p->tail, p->tail + 1); //~ 5 atomicity
	persist(&p->tail, 8);
	if (HAS_BUG(5)) {
		PUT(p->count, p->count + 1); //~ 5 atomicity
		persist(&p->count, 8);
	}
	return DONE;
}

static void dequeue(void)
{
	uint64_t *at = slot(p->ring, p->head), value = *at;
	if (HAS_BUG(6)) {
		PUT(*at, 0); //~ 6 ordering
		persist(at, 8);
	}
	PUT(p->head, p->head + 1); //~ 3 durability 5 atomicity 6 ordering
	if (!HAS_BUG(3))
		persist(&p->head, 8);
	if (HAS_BUG(5)) {
		PUT(p->count, p->count - 1); //~ 5 atomicity
		persist(&p->count, 8);
	}
	printf("%" PRIu64 "\n", value);
}

static void operate(char kind, uint64_t value, uint64_t unused)
{
	(void)unused;
	switch (kind) {
	case 'e':
		puts(answer_text(enqueue(value)));
		break;
	case 'q':
		if (p->head == p->tail)
			puts("empty");
		else
			dequeue();
		break;
	case 'n':
		printf("%" PRIu64 "\n", HAS_BUG(5) ? p->count : p->tail - p->head);
		break;
	case 'p':
		fputs("all", stdout);
		for (uint64_t i = p->head; i < p->tail; i++)
			printf(" %" PRIu64, *slot(p->ring, i));
		putchar('\n');
		break;
	default:
		puts("what?");
	}
}

static void start(void *pm, int is_new)
{
	(void)is_new;
	p = pm;
}

int main(int argc, char **argv)
{
	return ops_main(argc, argv, sizeof(struct pool), start, operate);
}
