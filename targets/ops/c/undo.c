//! A binary search tree whose operations are transactions with an undo log: the old value of a word is durable before the new
//! one is stored.
//! variants: 6
//! grammar: ordered.toml
//! bug 1: wrong count, insert and delete
//! bug 2: lost keys — recovery undoes what was never logged, insert and delete
//! bug 3: lost key — the log is gone before the change is there, insert
//! bug 4: stale value, update
//! bug 5: lost keys — a node with two children is half replaced, delete
//! bug 6: lost and unexpected keys — a node in the tree is free as well, later operations lose others, delete
#include "kv.h"

#define NODES 4096
#define LOG_ENTRIES 16

struct node {
	uint64_t key LINE_ALIGNED;
	uint64_t value;
	/* Numbers of nodes, or 0. */
	uint64_t children[2];
};

struct entry {
	uint64_t offset, old;
};

struct pool {
	uint64_t magic;
	/* How many entries of the log count. */
	uint64_t logged LINE_ALIGNED;
	struct entry log[LOG_ENTRIES] LINE_ALIGNED;
	uint64_t root LINE_ALIGNED;
	uint64_t count LINE_ALIGNED;
	/* Nodes that were ever used; number 0 is none. */
	uint64_t used LINE_ALIGNED;
	/* The first free node; `children[0]` is the next one. */
	uint64_t free LINE_ALIGNED;
	struct node nodes[NODES];
};

static struct pool *p;

/* Before each store of a transaction. */
static void log_word(uint64_t *word)
{
	struct entry *entry = &p->log[p->logged];
	PUT(entry->offset, (uint64_t)((char *)word - (char *)p)); //~ 2 ordering
	PUT(entry->old, *word); //~ 2 ordering
	flush(entry, sizeof *entry);
	if (!HAS_BUG(2))
		fence();
	PUT(p->logged, p->logged + 1);
	persist(&p->logged, 8);
}

static uint64_t *logged_word(uint64_t entry)
{
	return (uint64_t *)((char *)p + p->log[entry].offset);
}

static void commit(void)
{
	for (uint64_t i = 0; i < p->logged; i++)
		flush(logged_word(i), 8);
	if (!HAS_BUG(3))
		fence();
	PUT(p->logged, 0);
	persist(&p->logged, 8);
}

/* The link that leads, or would lead, to the key. */
static uint64_t *link_to(uint64_t key)
{
	uint64_t *link = &p->root;
	for (unsigned left = NODES; left && *link && p->nodes[*link].key != key; left--)
		link = &p->nodes[*link].children[key > p->nodes[*link].key];
	return link;
}

static uint64_t take(void)
{
	if (p->free) {
		uint64_t number = p->free;
		log_word(&p->free);
		PUT(p->free, p->nodes[number].children[0]);
		return number;
	}
	if (p->used + 1 >= NODES)
		return 0;
	log_word(&p->used);
	PUT(p->used, p->used + 1);
	return p->used;
}

static void set_count(uint64_t count)
{
	if (!HAS_BUG(1))
		log_word(&p->count);
	PUT(p->count, count); //~ 1 atomicity
	if (HAS_BUG(1))
		persist(&p->count, 8);
}

static enum answer insert(uint64_t key, uint64_t value)
{
	uint64_t *link = link_to(key);
	if (*link)
		return EXISTS;
	uint64_t number = take();
	if (!number)
		return FULL;
	struct node *node = &p->nodes[number];
	/* Nobody sees a free node but the list of free ones. */
	log_word(&node->children[0]);
	PUT(node->children[0], 0);
	PUT(node->children[1], 0);
	PUT(node->key, key);
	PUT(node->value, value);
	persist(node, sizeof *node);
	log_word(link);
	PUT(*link, number); //~ 3 ordering
	set_count(p->count + 1); //~ 1 atomicity
	commit();
	return DONE;
}

static enum answer update(uint64_t key, uint64_t value)
{
	uint64_t *link = link_to(key);
	if (!*link)
		return MISSING;
	uint64_t *word = &p->nodes[*link].value;
	if (!HAS_BUG(4))
		log_word(word);
	PUT(*word, value); //~ 4 durability
	commit();
	return DONE;
}

static enum answer erase(uint64_t key)
{
	uint64_t *link = link_to(key);
	if (!*link)
		return MISSING;
	uint64_t gone = *link;
	struct node *node = &p->nodes[gone];
	if (node->children[0] && node->children[1]) {
		/* The node's place is taken by the next larger one. */
		uint64_t *next = &node->children[1];
		for (unsigned left = NODES; left && p->nodes[*next].children[0]; left--)
			next = &p->nodes[*next].children[0];
		uint64_t heir = *next;
		log_word(next);
		PUT(*next, p->nodes[heir].children[1]); //~ 5 atomicity
		for (unsigned side = 0; side < 2; side++) {
			if (!HAS_BUG(5))
				log_word(&p->nodes[heir].children[side]);
			PUT(p->nodes[heir].children[side], node->children[side]); //~ 5 atomicity
			if (HAS_BUG(5))
				persist(&p->nodes[heir].children[side], 8);
		}
		log_word(link);
		PUT(*link, heir); //~ 5 atomicity
	} else {
		log_word(link);
		PUT(*link, node->children[node->children[0] == 0]); //~ 3 ordering
	}
	log_word(&node->children[0]);
	PUT(node->children[0], p->free);
	if (!HAS_BUG(6))
		log_word(&p->free);
	PUT(p->free, gone); //~ 6 ordering
	if (HAS_BUG(6))
		persist(&p->free, 8);
	set_count(p->count - 1); //~ 1 atomicity
	commit();
	return DONE;
}

static const uint64_t *find(uint64_t key)
{
	uint64_t *link = link_to(key);
	return *link ? &p->nodes[*link].value : NULL;
}

static uint64_t count(void)
{
	return p->count;
}

static void walk(uint64_t number, void (*show)(uint64_t key, uint64_t value))
{
	if (!number)
		return;
	walk(p->nodes[number].children[0], show);
	show(p->nodes[number].key, p->nodes[number].value);
	walk(p->nodes[number].children[1], show);
}

static void each(void (*show)(uint64_t key, uint64_t value))
{
	walk(p->root, show);
}

static void start(void *pm, int is_new)
{
	p = pm;
	if (is_new)
		return;
	while (p->logged) {
		uint64_t last = p->logged - 1;
		PUT(*logged_word(last), p->log[last].old);
		persist(logged_word(last), 8);
		PUT(p->logged, last);
		persist(&p->logged, 8);
	}
}

int main(int argc, char **argv)
{
	static const struct kv map = {insert, update, erase, find, count, each};
	return kv_main(argc, argv, sizeof(struct pool), start, &map);
}
