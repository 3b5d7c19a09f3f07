//! A B+-tree whose nodes are sorted in place: an entry that has the same pointer as its left neighbour does not count, so each
//! single store of a shift leaves a valid node. Leaves are linked; a split is visible in the chain before the parent knows it.
//! variants: 9
//! together: 1 3 4 6 8 | 2 5 | 9 | 7
//! run: {bin} {pool} run
//! recover: {bin} {pool} check
#include "pm.h"

#define ENTRIES 8
#define NODES 16
/* Left neighbour of a leaf's first entry. */
#define ANCHOR 1

struct entry {
	uint64_t key;
	/* A value in leaves, a link in the root; 0 ends the node. */
	uint64_t pointer;
};

struct node {
	/* The smallest key that may be here; never changes. */
	uint64_t low LINE_ALIGNED;
	/* Link of the leaf to the right, or 0. */
	uint64_t next;
	/* Link of the child with the smallest keys, or ANCHOR in a leaf. */
	uint64_t first;
	struct entry entries[ENTRIES] LINE_ALIGNED;
};

struct pool {
	uint64_t magic;
	uint64_t ack LINE_ALIGNED;
	uint64_t root LINE_ALIGNED;
	uint64_t used LINE_ALIGNED;
	struct node nodes[NODES];
};

static uint64_t link_of(struct pool *p, const struct node *n)
{
	return (uint64_t)(n - p->nodes) + 2;
}

static struct node *node_at(struct pool *p, uint64_t link)
{
	insist(link >= 2 && link - 2 < p->used && p->used <= NODES, "a link to no node");
	return &p->nodes[link - 2];
}

static struct node *new_node(struct pool *p)
{
	PUT(p->used, p->used + 1);
	persist(&p->used, 8);
	return &p->nodes[p->used - 1];
}

static unsigned length(const struct node *n)
{
	unsigned i = 0;
	while (i < ENTRIES && n->entries[i].pointer)
		i++;
	return i;
}

static uint64_t left_pointer(const struct node *n, unsigned i)
{
	return i ? n->entries[i - 1].pointer : n->first;
}

static int starts_line(const struct entry *e)
{
	return (uintptr_t)e % LINE == 0;
}

static void insert_entry(struct node *n, uint64_t key, uint64_t pointer)
{
	struct entry *e = n->entries;
	unsigned end = length(n), at = 0;
	while (at < end && e[at].key < key)
		at++;
	if (end + 1 < ENTRIES) {
		PUT(e[end + 1].pointer, 0);
		persist(&e[end + 1].pointer, 8);
	}
	for (unsigned i = end; i > at; i--) {
		PUT(e[i].pointer, e[i - 1].pointer); //~ 1 ordering
		PUT(e[i].key, e[i - 1].key); //~ 1 ordering
		if (starts_line(&e[i]) && !HAS_BUG(1))
			persist(&e[i], sizeof e[i]);
	}
	if (at < end && !HAS_BUG(2))
		PUT(e[at].pointer, left_pointer(n, at));
#if HAS_BUG(9)
	PUT(e[at].pointer, pointer); //~ 9 ordering
	PUT(e[at].key, key); //~ 9 ordering
#else
	PUT(e[at].key, key); //~ 2 atomicity
	PUT(e[at].pointer, pointer); //~ 2 atomicity
#endif
#if HAS_BUG(1)
	persist(&e[at], (end - at + 1) * sizeof *e);
#else
	persist(&e[at], sizeof *e);
#endif
}

static void remove_entry(struct node *n, unsigned at)
{
	struct entry *e = n->entries;
	unsigned end = length(n);
	if (e[at].pointer != left_pointer(n, at))
		PUT(e[at].pointer, left_pointer(n, at));
	for (; at + 1 < end; at++) {
		PUT(e[at].key, e[at + 1].key);
		PUT(e[at].pointer, e[at + 1].pointer);
		if (starts_line(&e[at + 1]))
			persist(&e[at], sizeof e[at]);
	}
	PUT(e[at].pointer, 0);
	persist(&e[at], sizeof e[at]);
}

/* Lets the root, or a new one, know of a leaf that is in the chain. */
static void add_to_root(struct pool *p, struct node *leaf)
{
	struct node *root = node_at(p, p->root);
	if (root->first != ANCHOR) {
		insert_entry(root, leaf->low, link_of(p, leaf));
		return;
	}
	struct node *new = new_node(p);
	PUT(new->first, p->root); //~ 8 ordering
	PUT(new->entries[0].key, leaf->low); //~ 8 ordering
	PUT(new->entries[0].pointer, link_of(p, leaf)); //~ 8 ordering
#if HAS_BUG(8)
	flush(new, sizeof *new);
#else
	persist(new, sizeof *new);
#endif
	PUT(p->root, link_of(p, new));
	persist(&p->root, 8);
}

static void split(struct pool *p, struct node *leaf)
{
	unsigned middle = ENTRIES / 2;
	struct node *new = new_node(p);
	PUT(new->low, leaf->entries[middle].key); //~ 3 ordering
	PUT(new->next, leaf->next); //~ 3 ordering
	PUT(new->first, ANCHOR); //~ 3 ordering
	memcpy(new->entries, &leaf->entries[middle], (ENTRIES - middle) * sizeof(struct entry)); //~ 3 ordering
#if HAS_BUG(3)
	flush(new, sizeof *new);
#else
	persist(new, sizeof *new);
#endif
#if HAS_BUG(5)
	PUT(leaf->entries[middle].pointer, 0); //~ 5 ordering
	persist(&leaf->entries[middle], 16);
#endif
	PUT(leaf->next, link_of(p, new)); //~ 4 durability 5 ordering
#if !HAS_BUG(4)
	persist(&leaf->next, 8);
#endif
	PUT(leaf->entries[middle].pointer, 0);
	persist(&leaf->entries[middle], 16);
	add_to_root(p, new);
}

static struct node *first_leaf(struct pool *p)
{
	struct node *root = node_at(p, p->root);
	return root->first == ANCHOR ? root : node_at(p, root->first);
}

static struct node *leaf_of(struct pool *p, uint64_t key)
{
	struct node *n = node_at(p, p->root);
	if (n->first != ANCHOR) {
		unsigned i = 0, end = length(n);
		while (i < end && n->entries[i].key <= key)
			i++;
		n = node_at(p, left_pointer(n, i));
	}
	while (n->next && node_at(p, n->next)->low <= key)
		n = node_at(p, n->next);
	return n;
}

static struct entry *find(struct node *leaf, uint64_t key)
{
	for (unsigned i = 0, end = length(leaf); i < end; i++)
		if (leaf->entries[i].key == key)
			return &leaf->entries[i];
	return NULL;
}

static void put(struct pool *p, uint64_t key, uint64_t value)
{
	struct node *leaf = leaf_of(p, key);
	struct entry *e = find(leaf, key);
	if (e) {
		PUT(e->pointer, value); //~ 6 durability
#if !HAS_BUG(6)
		persist(&e->pointer, 8);
#endif
		return;
	}
	if (length(leaf) == ENTRIES) {
		split(p, leaf);
		leaf = leaf_of(p, key);
	}
	insert_entry(leaf, key, value);
}

static void erase(struct pool *p, uint64_t key)
{
	struct node *leaf = leaf_of(p, key);
	remove_entry(leaf, (unsigned)(find(leaf, key) - leaf->entries));
}

/* Positive: insert or, if it is there, update; negative: erase. */
static const int script[] = {20, 8, 31, 14, 3, 26, 11, 17, 5, 8, 29, -14, 23, 2, 35, 33, -3, 12, 6, 28, 39, 14, 24, 31, 1, -20, 37, 9, 22, 30, 7, -39, 34, 17, 10, 4};
#define OPERATIONS (sizeof script / sizeof script[0])
#define KEYS 40

static uint64_t value_of(uint64_t key, uint64_t operation)
{
	return key << 32 | (operation + 1);
}

static void run(void *pm)
{
	struct pool *p = pm;
	PUT(p->nodes[0].first, ANCHOR);
	PUT(p->root, link_of(p, &p->nodes[0]));
	PUT(p->used, 1);
	flush(&p->nodes[0].first, 8);
	flush(&p->root, 8);
	persist(&p->used, 8);
	PUT(p->magic, POOL_MAGIC);
	persist(&p->magic, 8);
	for (uint64_t i = 0; i < OPERATIONS; i++) {
		uint64_t key = (uint64_t)abs(script[i]);
		if (script[i] < 0)
			erase(p, key);
		else
			put(p, key, value_of(key, i));
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

/* Ends a shift that was under way: at most one entry does not count. */
static void repair_shift(struct node *n)
{
	for (unsigned i = 0, end = length(n); i < end; i++)
		if (n->entries[i].pointer == left_pointer(n, i)) {
			remove_entry(n, i);
			return;
		}
}

/* Ends a split that was under way to the right of this leaf. */
static void repair_split(struct pool *p, struct node *leaf)
{
	struct node *next = node_at(p, leaf->next);
	for (unsigned i = 0, end = length(leaf); i < end; i++)
		if (leaf->entries[i].key >= next->low) {
			PUT(leaf->entries[i].pointer, 0);
			persist(&leaf->entries[i].pointer, 8);
			break;
		}
	struct node *root = node_at(p, p->root);
#if HAS_BUG(7)
	struct node *inner = root->first != ANCHOR ? root : NULL;
	if (*(volatile uint64_t *)&inner->entries[0].pointer == 0) //~ 7 recovery
		broken("a root without entries");
#endif
	if (root->first != ANCHOR)
		for (unsigned i = 0, end = length(root); i < end; i++)
			if (root->entries[i].pointer == leaf->next)
				return;
	add_to_root(p, next);
}

static void check_leaf(struct pool *p, struct node *leaf, uint64_t *found)
{
	uint64_t smallest = leaf->low, limit = leaf->next ? node_at(p, leaf->next)->low : KEYS;
	insist(leaf->first == ANCHOR && limit > smallest && limit <= KEYS, "a leaf is not one");
	for (unsigned i = 0, end = length(leaf); i < end; i++) {
		const struct entry *e = &leaf->entries[i];
		insist(e->key >= smallest && e->key < limit, "a leaf is not sorted");
		found[e->key] = e->pointer;
		smallest = e->key + 1;
	}
}

static void check(void *pm)
{
	struct pool *p = pm;
	repair_shift(node_at(p, p->root));
	unsigned leaves = 0;
	for (struct node *leaf = first_leaf(p);; leaf = node_at(p, leaf->next)) {
		insist(++leaves <= NODES, "the leaves have no end");
		repair_shift(leaf);
		if (!leaf->next)
			break;
		repair_split(p, leaf);
	}
	uint64_t found[KEYS] = {0};
	struct node *root = node_at(p, p->root), *leaf = first_leaf(p);
	check_leaf(p, leaf, found);
	if (root != leaf) {
		insist(length(root) == leaves - 1, "leaves are lost");
		for (unsigned i = 0, end = length(root); i < end; i++) {
			insist(root->entries[i].pointer == leaf->next, "the root and the leaves disagree");
			leaf = node_at(p, leaf->next);
			insist(root->entries[i].key == leaf->low, "the root has a wrong key");
			check_leaf(p, leaf, found);
		}
	}
	insist(equals_model(found, p->ack) || equals_model(found, p->ack + 1), "not what the finished operations left");
}

int main(int argc, char **argv)
{
	return pm_main(argc, argv, sizeof(struct pool), run, check);
}
