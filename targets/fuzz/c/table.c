//! A hash table that grows: open addressing, a table of twice the size when it is three quarters full, tombstones that are
//! used again and swept when there are many.
//! variants: 6
//! grammar: kv.toml
//! bug 1: lost keys — a table that was not copied, third insert that grows
//! bug 2: wrong value — what was in the slot before, insert into a tombstone
//! bug 3: lost keys — a half-done sweep, delete that sweeps
//! bug 4: lost value — it is never made durable, insert of the largest value
//! bug 5: lost keys — the second half of a table, fourth insert that grows
//! bug 6: lost key — two entries change places, update of a key beside a tombstone
#include "rare.h"

#define TABLES 9
#define FIRST UINT64_C(8)
/* States of a slot. */
enum { FREE, USED, GONE };

struct slot {
	uint64_t state;
	uint64_t key;
	uint64_t value;
	uint64_t pad;
};

struct pool {
	uint64_t magic;
	/* Which table is in use. */
	uint64_t table LINE_ALIGNED;
	struct slot slots[FIRST << TABLES] LINE_ALIGNED;
};

static struct pool *p;

static uint64_t size_of(uint64_t table)
{
	return FIRST << table;
}

static struct slot *slot(uint64_t table, uint64_t number)
{
	return &p->slots[size_of(table) + (number & (size_of(table) - 1))];
}

static uint64_t mixed(uint64_t key)
{
	return key * UINT64_C(0x9e3779b97f4a7c15) >> 40;
}

static struct slot *find(uint64_t key)
{
	for (uint64_t i = 0; i < size_of(p->table); i++) {
		struct slot *s = slot(p->table, mixed(key) + i);
		if (s->state == FREE)
			return NULL;
		if (s->state == USED && s->key == key)
			return s;
	}
	return NULL;
}

static uint64_t count(uint64_t state)
{
	uint64_t n = 0;
	for (uint64_t i = 0; i < size_of(p->table); i++)
		n += slot(p->table, i)->state == state;
	return n;
}

/* Copies what is in use into another table and goes over to it. */
static void move_to(uint64_t next)
{
	/* What a crash in the midst of this has left there. */
	for (uint64_t i = 0; i < size_of(next); i++)
		if (slot(next, i)->state != FREE) {
			PUT(slot(next, i)->state, FREE);
			persist(slot(next, i), sizeof(struct slot));
		}
	for (uint64_t i = 0; i < size_of(p->table); i++) {
		struct slot *from = slot(p->table, i);
		if (from->state != USED)
			continue;
		uint64_t at = mixed(from->key);
		while (slot(next, at)->state == USED)
			at++;
		struct slot *to = slot(next, at);
		PUT(to->key, from->key); //~ 1 ordering 5 durability
		PUT(to->value, from->value); //~ 1 ordering 5 durability
		PUT(to->state, USED); //~ 1 ordering 5 durability
	}
	uint64_t bytes = size_of(next) * sizeof(struct slot);
	if (BUG == 5 && next >= 4)
		bytes /= 2;
	flush(slot(next, 0), bytes);
	if (BUG != 1 || next < 3)
		fence();
	PUT(p->table, next);
	persist(&p->table, 8);
}

static enum answer insert(uint64_t key, uint64_t value)
{
	if (find(key))
		return EXISTS;
	if ((count(USED) + count(GONE) + 1) * 4 > size_of(p->table) * 3) {
		if (p->table + 2 >= TABLES)
			return FULL;
		move_to(p->table + 1);
	}
	uint64_t at = mixed(key);
	while (slot(p->table, at)->state == USED)
		at++;
	struct slot *s = slot(p->table, at);
	int again = s->state == GONE;
	PUT(s->key, key);
	if (BUG == 2 && again) {
		PUT(s->state, USED); //~ 2 ordering
		persist(s, sizeof *s);
		PUT(s->value, value); //~ 2 ordering
		persist(s, sizeof *s);
		return DONE;
	}
	if (BUG == 4 && value == 999999999) {
		persist(s, sizeof *s);
		PUT(s->state, USED);
		persist(s, sizeof *s);
		PUT(s->value, value); //~ 4 durability
		return DONE;
	}
	PUT(s->value, value);
	persist(s, sizeof *s);
	PUT(s->state, USED);
	persist(s, sizeof *s);
	return DONE;
}

static enum answer update(uint64_t key, uint64_t value)
{
	struct slot *s = find(key);
	if (!s)
		return MISSING;
	struct slot *next = s == slot(p->table, size_of(p->table) - 1) ? s : s + 1;
	if (BUG == 6 && next->state == GONE) {
		PUT(s->state, GONE); //~ 6 ordering
		persist(s, sizeof *s);
		PUT(s->value, value);
		persist(s, sizeof *s);
		PUT(s->state, USED); //~ 6 ordering
		persist(s, sizeof *s);
		return DONE;
	}
	PUT(s->value, value);
	persist(s, sizeof *s);
	return DONE;
}

static enum answer delete(uint64_t key)
{
	struct slot *s = find(key);
	if (!s)
		return MISSING;
	PUT(s->state, GONE);
	persist(s, sizeof *s);
	if (count(GONE) * 3 > size_of(p->table) && p->table + 2 < TABLES) {
		if (BUG == 3) {
			uint64_t next = p->table + 1;
			PUT(p->table, next); //~ 3 ordering
			persist(&p->table, 8);
			for (uint64_t i = 0; i < size_of(next - 1); i++) {
				struct slot *from = slot(next - 1, i);
				if (from->state != USED)
					continue;
				uint64_t at = mixed(from->key);
				while (slot(next, at)->state == USED)
					at++;
				struct slot *to = slot(next, at);
				PUT(to->key, from->key); //~ 3 ordering
				PUT(to->value, from->value); //~ 3 ordering
				PUT(to->state, USED); //~ 3 ordering
				persist(to, sizeof *to);
			}
		} else {
			move_to(p->table + 1);
		}
	}
	return DONE;
}

static void operate(char kind, uint64_t key, uint64_t value)
{
	struct slot *s;
	switch (kind) {
	case 'i':
		puts(answer_text(insert(key, value)));
		break;
	case 'u':
		puts(answer_text(update(key, value)));
		break;
	case 'd':
		puts(answer_text(delete(key)));
		break;
	case 'g':
		s = find(key);
		if (s)
			printf("%" PRIu64 "\n", s->value);
		else
			puts("missing");
		break;
	case 'n':
		printf("%" PRIu64 "\n", count(USED));
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
