//! A hash table with linear probing whose operations are transactions with a redo log: a change is logged whole, committed by
//! one word, and then written. A full table is copied into one of twice the size.
//! variants: 7
//! grammar: kv.toml
//! together: 1 2 3 4 6 | 5 7
//! bug 1: lost and unexpected keys — recovery writes what was logged before, insert and delete
//! bug 2: lost key — the log is gone before the change is there, insert
//! bug 3: wrong count, insert and delete
//! bug 4: lost keys — a gap in the row of a key, delete
//! bug 5: lost and duplicated keys — a change is half written, insert and delete
//! bug 6: lost keys — a table that was not copied, insert that grows
//! bug 7: failure of a later operation — the table seems to be larger than it is, and an insertion finds no slot, insert that grows
#include "kv.h"

/* Table n has 8 * 2^n slots, and the smaller tables lie before it. */
#define TABLES 11
#define LOG_ENTRIES 512

struct slot {
	/* The key plus 1, or 0 if the slot is free. */
	uint64_t key, value;
};

struct entry {
	uint64_t offset, value;
};

struct pool {
	uint64_t magic;
	/* How many entries of the log are committed. */
	uint64_t committed LINE_ALIGNED;
	uint64_t table LINE_ALIGNED;
	uint64_t count LINE_ALIGNED;
	/* Only kept by bug 7: slots of the table. */
	uint64_t room LINE_ALIGNED;
	struct entry log[LOG_ENTRIES] LINE_ALIGNED;
	struct slot slots[8 << TABLES] LINE_ALIGNED;
};

static struct pool *p;
/* What the transaction will store. */
static struct entry changes[LOG_ENTRIES];
static uint64_t change_count;

static uint64_t size_of(uint64_t table)
{
	return UINT64_C(8) << table;
}

static struct slot *slot_at(uint64_t table, uint64_t number)
{
	return &p->slots[size_of(table) + (number & (size_of(table) - 1))];
}

static void change(uint64_t *word, uint64_t value)
{
	changes[change_count++] = (struct entry){(uint64_t)((char *)word - (char *)p), value};
}

static void write_back(void)
{
	for (uint64_t i = 0; i < p->committed; i++) {
		uint64_t *word = (uint64_t *)((char *)p + p->log[i].offset);
		PUT(*word, p->log[i].value); //~ 2 ordering 5 atomicity
		flush(word, 8);
	}
	if (!HAS_BUG(2))
		fence();
	PUT(p->committed, 0); //~ 5 atomicity
	persist(&p->committed, 8);
}

static void commit(void)
{
	for (uint64_t i = 0; i < change_count; i++) {
		PUT(p->log[i].offset, changes[i].offset); //~ 1 ordering
		PUT(p->log[i].value, changes[i].value); //~ 1 ordering
	}
	flush(p->log, change_count * sizeof *p->log);
	if (!HAS_BUG(1))
		fence();
	PUT(p->committed, change_count); //~ 4 ordering 3 atomicity
	persist(&p->committed, 8);
	change_count = 0;
	write_back();
}

static struct slot *locate(uint64_t key)
{
	for (uint64_t i = kv_hash(key), left = size_of(p->table); left; i++, left--) {
		struct slot *slot = slot_at(p->table, i);
		if (slot->key == key + 1 || !slot->key)
			return slot;
	}
	return NULL;
}

/* A copy that did not come to its end is still in the next table. */
static void clear_next(void)
{
	for (uint64_t i = 0; i < size_of(p->table + 1); i++)
		if (slot_at(p->table + 1, i)->key)
			PUT(slot_at(p->table + 1, i)->key, 0);
}

static void grow(void)
{
	uint64_t next = p->table + 1;
	clear_next();
	for (uint64_t i = 0; i < size_of(p->table); i++) {
		struct slot *old = slot_at(p->table, i);
		if (!old->key)
			continue;
		uint64_t at = kv_hash(old->key - 1);
		while (slot_at(next, at)->key)
			at++;
		PUT(slot_at(next, at)->value, old->value); //~ 6 ordering
		PUT(slot_at(next, at)->key, old->key); //~ 6 ordering
	}
	flush(slot_at(next, 0), size_of(next) * sizeof(struct slot));
	if (!HAS_BUG(6))
		fence();
	if (HAS_BUG(7)) {
		PUT(p->room, size_of(next)); //~ 7 ordering
		persist(&p->room, 8);
	}
	PUT(p->table, next); //~ 7 ordering
	persist(&p->table, 8);
}

/* Leaves a quarter of the table free. */
static uint64_t limit(void)
{
	return (HAS_BUG(7) ? p->room : size_of(p->table)) / 4 * 3;
}

static void count_by(uint64_t difference)
{
	if (HAS_BUG(3)) {
		PUT(p->count, p->count + difference); //~ 3 atomicity
		persist(&p->count, 8);
	} else {
		change(&p->count, p->count + difference);
	}
}

static enum answer insert(uint64_t key, uint64_t value)
{
	struct slot *slot = locate(key);
	if (slot && slot->key)
		return EXISTS;
	if (p->count >= limit()) {
		if (p->table + 2 == TABLES)
			return FULL;
		grow();
		slot = locate(key);
	}
	if (!slot)
		return FULL;
	change(&slot->value, value);
	change(&slot->key, key + 1);
	count_by(1);
	commit();
	return DONE;
}

static enum answer update(uint64_t key, uint64_t value)
{
	struct slot *slot = locate(key);
	if (!slot || !slot->key)
		return MISSING;
	change(&slot->value, value);
	commit();
	return DONE;
}

/* What comes behind the gap and may stand in it moves into it, and so on. */
static enum answer erase(uint64_t key)
{
	struct slot *gap = locate(key);
	if (!gap || !gap->key)
		return MISSING;
	if (HAS_BUG(4)) {
		PUT(gap->key, 0); //~ 4 ordering
		persist(&gap->key, 8);
	}
	uint64_t mask = size_of(p->table) - 1, hole = (uint64_t)(gap - slot_at(p->table, 0));
	for (uint64_t i = hole + 1, left = mask; left && slot_at(p->table, i)->key; i++, left--) {
		struct slot *slot = slot_at(p->table, i);
		if (((i - kv_hash(slot->key - 1)) & mask) < ((i - hole) & mask))
			continue;
		change(&slot_at(p->table, hole)->value, slot->value);
		change(&slot_at(p->table, hole)->key, slot->key);
		hole = i;
	}
	change(&slot_at(p->table, hole)->key, 0);
	count_by(-UINT64_C(1));
	commit();
	return DONE;
}

static const uint64_t *find(uint64_t key)
{
	struct slot *slot = locate(key);
	return slot && slot->key ? &slot->value : NULL;
}

static uint64_t count(void)
{
	return p->count;
}

static void each(void (*show)(uint64_t key, uint64_t value))
{
	for (uint64_t i = 0; i < size_of(p->table); i++)
		if (slot_at(p->table, i)->key)
			show(slot_at(p->table, i)->key - 1, slot_at(p->table, i)->value);
}

static void start(void *pm, int is_new)
{
	p = pm;
	if (is_new && HAS_BUG(7)) {
		PUT(p->room, size_of(0));
		persist(&p->room, 8);
	}
	if (is_new || !p->committed)
		return;
	if (HAS_BUG(5)) {
		PUT(p->committed, 0);
		persist(&p->committed, 8);
		return;
	}
	write_back();
}

int main(int argc, char **argv)
{
	static const struct kv map = {insert, update, erase, find, count, each};
	return kv_main(argc, argv, sizeof(struct pool), start, &map);
}
