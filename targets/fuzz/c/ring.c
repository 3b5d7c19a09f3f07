//! A queue in a ring of 32 items that are one or two words long: long items may not go across the end of the ring, where a mark says that
//! the rest is empty.
//! variants: 4
//! grammar: queue.toml
//! bug 1: wrong items — the mark at the end is missing, enqueue that wraps
//! bug 2: lost item — the tail comes before the item, enqueue at the very end
//! bug 3: wrong item — its second word, enqueue of a long item after the first wrap
//! bug 4: lost items — emptied twice, dequeue that wraps
#include "rare.h"

#define SLOTS 32
#define MARK UINT64_MAX
/* Items from this value on take two words. */
#define LONG UINT64_C(500000000)

struct pool {
	uint64_t magic;
	/* Both count words for ever. */
	uint64_t head LINE_ALIGNED;
	uint64_t tail LINE_ALIGNED;
	struct {
		uint64_t word LINE_ALIGNED;
	} slots[SLOTS];
};

static struct pool *p;

static uint64_t *word(uint64_t number)
{
	return &p->slots[number % SLOTS].word;
}

static enum answer enqueue(uint64_t value)
{
	uint64_t words = value >= LONG ? 2 : 1, tail = p->tail, skip = 0;
	if (words == 2 && tail % SLOTS == SLOTS - 1)
		skip = 1;
	if (tail + skip + words - p->head > SLOTS)
		return FULL;
	if (skip) {
		PUT(*word(tail), MARK); //~ 1 durability
		if (BUG != 1)
			persist(word(tail), 8);
		tail++;
	}
	if (BUG == 2 && words == 1 && tail % SLOTS == SLOTS - 1) {
		PUT(p->tail, tail + 1); //~ 2 ordering
		persist(&p->tail, 8);
		PUT(*word(tail), value); //~ 2 ordering
		persist(word(tail), 8);
		return DONE;
	}
	PUT(*word(tail), value);
	persist(word(tail), 8);
	if (words == 2) {
		PUT(*word(tail + 1), ~value); //~ 3 durability
		if (!(BUG == 3 && tail > SLOTS))
			persist(word(tail + 1), 8);
	}
	PUT(p->tail, tail + words);
	persist(&p->tail, 8);
	return DONE;
}

/* The first item, and how many words it takes with the mark before it; 0: there is none. */
static uint64_t first(uint64_t head, uint64_t *value)
{
	uint64_t skip = 0;
	if (head == p->tail)
		return 0;
	if (*word(head) == MARK)
		skip = 1;
	*value = *word(head + skip);
	if (*value < LONG)
		return skip + 1;
	if (*word(head + skip + 1) != ~*value)
		*value = 0;
	return skip + 2;
}

static void operate(char kind, uint64_t value, uint64_t unused)
{
	uint64_t words, n = 0;
	(void)unused;
	switch (kind) {
	case 'e':
		puts(answer_text(enqueue(value)));
		break;
	case 'q':
		words = first(p->head, &value);
		if (!words) {
			puts("empty");
			break;
		}
		if (BUG == 4 && p->head / SLOTS != (p->head + words) / SLOTS) {
			uint64_t head = p->head;
			PUT(p->head, p->tail); //~ 4 atomicity
			persist(&p->head, 8);
			PUT(p->head, head + words); //~ 4 atomicity
			persist(&p->head, 8);
			printf("%" PRIu64 "\n", value);
			break;
		}
		PUT(p->head, p->head + words);
		persist(&p->head, 8);
		printf("%" PRIu64 "\n", value);
		break;
	case 'n':
	case 'p':
		if (kind == 'p')
			fputs("all", stdout);
		for (uint64_t at = p->head; (words = first(at, &value)); at += words, n++)
			if (kind == 'p')
				printf(" %" PRIu64, value);
		if (kind == 'n')
			printf("%" PRIu64, n);
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
