//! Cells under a redo journal: an operation writes what it will do, commits, does it, and forgets the journal. Opening the pool does
//! again what was committed. The journal is compacted after a number of operations, and on every eighth opening.
//! variants: 5
//! grammar: kv.toml
//! bug 1: lost change — the journal is forgotten first, recovery of a committed change
//! bug 2: lost change — done by recovery, but not durable, recovery of a committed change
//! bug 3: wrong count — a store that nobody makes durable, opening of a pool that was used before
//! bug 4: wrong value — the journal is committed before it is whole, update after 24 changes
//! bug 5: hang — a counter that wraps, opening after many changes
#include "rare.h"

#define CELLS 4096

struct pool {
	uint64_t magic;
	struct {
		uint64_t committed;
		uint64_t cell;
		uint64_t state;
		uint64_t value;
	} journal LINE_ALIGNED;
	uint64_t changes LINE_ALIGNED;
	uint64_t openings LINE_ALIGNED;
	uint64_t used LINE_ALIGNED;
	struct cell {
		uint64_t state;
		uint64_t value;
	} cells[CELLS] LINE_ALIGNED;
};

static struct pool *p;

static void redo(int recovering)
{
	struct cell *c = &p->cells[p->journal.cell % CELLS];
	if (BUG == 1 && recovering) {
		PUT(p->journal.committed, 0); //~ 1 ordering
		persist(&p->journal, sizeof p->journal);
	}
	PUT(c->value, p->journal.value); //~ 1 ordering 2 durability
	PUT(c->state, p->journal.state); //~ 1 ordering 2 durability
	if (BUG != 2 || !recovering)
		persist(c, sizeof *c);
	PUT(p->journal.committed, 0);
	persist(&p->journal, sizeof p->journal);
}

static enum answer change(uint64_t cell, uint64_t state, uint64_t value)
{
	PUT(p->journal.cell, cell);
	PUT(p->journal.state, state);
	if (BUG == 4 && p->changes >= 24) {
		persist(&p->journal, sizeof p->journal);
		PUT(p->journal.committed, 1); //~ 4 ordering
		persist(&p->journal, sizeof p->journal);
		PUT(p->journal.value, value); //~ 4 ordering
		persist(&p->journal, sizeof p->journal);
	} else {
		PUT(p->journal.value, value);
		persist(&p->journal, sizeof p->journal);
		PUT(p->journal.committed, 1);
		persist(&p->journal, sizeof p->journal);
	}
	redo(0);
	PUT(p->changes, p->changes + 1);
	persist(&p->changes, 8);
	return DONE;
}

static uint64_t used(void)
{
	uint64_t n = 0;
	for (uint64_t i = 0; i < CELLS; i++)
		n += p->cells[i].state != 0;
	return n;
}

static void operate(char kind, uint64_t key, uint64_t value)
{
	struct cell *c = &p->cells[key % CELLS];
	switch (kind) {
	case 'i':
		puts(answer_text(c->state ? EXISTS : change(key, 1, value)));
		break;
	case 'u':
		puts(answer_text(c->state ? change(key, 1, value) : MISSING));
		break;
	case 'd':
		puts(answer_text(c->state ? change(key, 0, 0) : MISSING));
		break;
	case 'g':
		if (c->state)
			printf("%" PRIu64 "\n", c->value);
		else
			puts("missing");
		break;
	case 'n':
		printf("%" PRIu64 "\n", BUG == 3 && p->used ? p->used - 1 : used());
		break;
	default:
		puts("what?");
	}
	if (BUG == 3 && p->used && (kind == 'i' || kind == 'd')) {
		PUT(p->used, used() + 1); //~ 3 durability
		flush(&p->used, 8);
	}
}

static void start(void *pm, int is_new)
{
	p = pm;
	if (is_new)
		return;
	if (p->journal.committed)
		redo(1);
	if (BUG == 3 && !p->used) {
		PUT(p->used, used() + 1);
		persist(&p->used, 8);
	}
	if (BUG == 5 && p->changes > 40)
		for (volatile uint8_t i = 0; i < p->changes + 256; i++) //~ 5 recovery
			;
}

int main(int argc, char **argv)
{
	return ops_main(argc, argv, sizeof(struct pool), start, operate);
}
