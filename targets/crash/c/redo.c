//! A sorted, doubly linked list under a redo log: new words are streamed into the log, committed with one word, then applied.
//! variants: 7
//! together: 1 2 4 5 | 3 6 | 7
//! run: {bin} {pool} run
//! recover: {bin} {pool} check
#include "pm.h"

#define NODES 20
#define LOG_ENTRIES 12

/* Links are places in `nodes`; 0 is the list's own node, which is before the first and after the last. */
struct node {
	uint64_t key;
	uint64_t value;
	uint64_t next;
	uint64_t previous;
};

struct entry {
	uint64_t offset;
	uint64_t word;
};

struct pool {
	uint64_t magic;
	uint64_t ack LINE_ALIGNED;
	/* How many log entries are to be applied. */
	uint64_t committed LINE_ALIGNED;
#if HAS_BUG(4)
	uint64_t entries;
#endif
	struct entry log[LOG_ENTRIES] LINE_ALIGNED;
	uint64_t count LINE_ALIGNED;
	/* First of the free nodes, linked by `next`. */
	uint64_t free;
	struct node nodes[NODES] LINE_ALIGNED;
};

/* What the transaction under way will write. */
static struct entry pending[LOG_ENTRIES];
static unsigned pending_count;

static void tx_put(struct pool *p, uint64_t *word, uint64_t value)
{
	pending[pending_count++] = (struct entry){(uint64_t)((char *)word - (char *)p), value};
}

static void apply(struct pool *p, uint64_t entries)
{
	for (uint64_t i = 0; i < entries; i++) {
		insist(p->log[i].offset % 8 == 0 && p->log[i].offset >= offsetof(struct pool, count) &&
			       p->log[i].offset < sizeof *p,
		       "a log entry has no place");
		uint64_t *word = (uint64_t *)((char *)p + p->log[i].offset);
		PUT(*word, p->log[i].word); //~ 2 ordering 3 durability
#if !HAS_BUG(3)
		flush(word, 8);
#endif
	}
#if !HAS_BUG(2)
	fence();
#endif
	PUT(p->committed, 0);
	persist(&p->committed, 8);
}

static void tx_commit(struct pool *p)
{
	for (unsigned i = 0; i < pending_count; i++) {
#if HAS_BUG(6)
		PUT(p->log[i].offset, pending[i].offset); //~ 6 durability
		PUT(p->log[i].word, pending[i].word); //~ 6 durability
#else
		PUT_NT(p->log[i].offset, pending[i].offset); //~ 1 ordering
		PUT_NT(p->log[i].word, pending[i].word); //~ 1 ordering
#endif
	}
#if !HAS_BUG(1)
	fence();
#endif
#if HAS_BUG(4)
	PUT(p->committed, 1); //~ 4 ordering
	PUT(p->entries, pending_count); //~ 4 ordering
#else
	PUT(p->committed, pending_count);
#endif
	persist(&p->committed, 16);
	apply(p, pending_count);
	pending_count = 0;
}

static uint64_t value_of(uint64_t key, uint64_t operation)
{
	return key * UINT64_C(0x100000001b3) + operation;
}

/* The last node before `key`. */
static uint64_t before(struct pool *p, uint64_t key)
{
	uint64_t at = 0;
	while (p->nodes[at].next && p->nodes[p->nodes[at].next].key < key)
		at = p->nodes[at].next;
	return at;
}

static void add_to_count(struct pool *p, uint64_t by)
{
#if HAS_BUG(5)
	PUT(p->count, p->count + by); //~ 5 atomicity
	persist(&p->count, 8);
#else
	tx_put(p, &p->count, p->count + by);
#endif
}

static void insert(struct pool *p, uint64_t key, uint64_t value)
{
	uint64_t left = before(p, key), right = p->nodes[left].next, new = p->free;
	struct node *n = &p->nodes[new];
	tx_put(p, &p->free, n->next);
	tx_put(p, &n->key, key);
	tx_put(p, &n->value, value);
	tx_put(p, &n->next, right);
	tx_put(p, &n->previous, left);
	tx_put(p, &p->nodes[left].next, new);
	tx_put(p, &p->nodes[right].previous, new);
	add_to_count(p, 1);
	tx_commit(p);
}

static void erase(struct pool *p, uint64_t key)
{
	uint64_t left = before(p, key), old = p->nodes[left].next, right = p->nodes[old].next;
	tx_put(p, &p->nodes[left].next, right);
	tx_put(p, &p->nodes[right].previous, left);
	tx_put(p, &p->nodes[old].next, p->free);
	tx_put(p, &p->free, old);
	add_to_count(p, -1);
	tx_commit(p);
}

static void update(struct pool *p, uint64_t key, uint64_t value)
{
	tx_put(p, &p->nodes[p->nodes[before(p, key)].next].value, value);
	tx_commit(p);
}

/* Positive: insert or, if it is there, update; negative: erase. */
static const int script[] = {9, 4, 14, 4, 2, 11, -4, 7, 9, -14, 3, 16, 12, -2, 5, 7, 1, -9, 13, 6, -1, 16};
#define OPERATIONS (sizeof script / sizeof script[0])
#define KEYS 17

static void run(void *pm)
{
	struct pool *p = pm;
	for (uint64_t i = 1; i + 1 < NODES; i++)
		PUT(p->nodes[i].next, i + 1);
	PUT(p->free, 1);
	flush(p->nodes, sizeof p->nodes);
	persist(&p->free, 8);
	PUT(p->magic, POOL_MAGIC);
	persist(&p->magic, 8);
	for (uint64_t i = 0; i < OPERATIONS; i++) {
		uint64_t key = (uint64_t)abs(script[i]), at = p->nodes[before(p, key)].next;
		if (script[i] < 0)
			erase(p, key);
		else if (at && p->nodes[at].key == key)
			update(p, key, value_of(key, i));
		else
			insert(p, key, value_of(key, i));
		PUT(p->ack, i + 1);
		persist(&p->ack, 8);
	}
}

static int equals_model(const uint64_t *found, uint64_t operations)
{
	uint64_t values[KEYS] = {0};
	if (operations > OPERATIONS)
		return 0;
	for (uint64_t i = 0; i < operations; i++)
		values[abs(script[i])] = script[i] < 0 ? 0 : value_of((uint64_t)script[i], i);
	return memcmp(found, values, sizeof values) == 0;
}

static void replay_log(struct pool *p)
{
	uint64_t entries = p->committed;
#if HAS_BUG(4)
	entries = p->entries;
#endif
#if HAS_BUG(7)
	/* A log cannot be longer than what its nodes need. */
	uint64_t room = NODES * LOG_ENTRIES / *(volatile uint64_t *)&p->count; //~ 7 recovery
	insist(entries <= room, "the log is too long for the list");
#endif
	insist(entries <= LOG_ENTRIES, "more log entries than fit");
	apply(p, entries);
}

static void check(void *pm)
{
	struct pool *p = pm;
	if (p->committed)
		replay_log(p);
	uint64_t found[KEYS] = {0};
	uint64_t count = 0, key = 0, previous = 0;
	for (uint64_t at = p->nodes[0].next; at; at = p->nodes[at].next) {
		insist(at < NODES && ++count < NODES, "the list has no end");
		struct node *n = &p->nodes[at];
		insist(n->previous == previous, "a link back is wrong");
		insist(n->key > key && n->key < KEYS, "the list is not sorted");
		found[n->key] = n->value;
		key = n->key;
		previous = at;
	}
	insist(p->nodes[0].previous == previous, "the link to the last node is wrong");
	insist(p->count == count, "the count is wrong");
	for (uint64_t at = p->free; at; at = p->nodes[at].next)
		insist(at < NODES && ++count < NODES, "the free nodes have no end");
	insist(count == NODES - 1, "nodes are lost");
	insist(equals_model(found, p->ack) || equals_model(found, p->ack + 1), "not what the finished operations left");
}

int main(int argc, char **argv)
{
	return pm_main(argc, argv, sizeof(struct pool), run, check);
}
