//! A radix tree over 4-byte keys with compressed paths: nodes grow from 4 to 16 children by copying, leaves are replaced whole,
//! and a path is split in two steps, of which recovery can do the second.
//! variants: 8
//! together: 1 2 4 7 8 | 3 5 | 6
//! run: {bin} {pool} run
//! recover: {bin} {pool} check
#include <stdbool.h>
#include "pm.h"

#define KEY_BYTES 4
#define WIDEST 16
#define NODES 24
#define LEAVES 32

struct leaf {
	uint64_t key LINE_ALIGNED;
	uint64_t value;
	uint64_t check;
};

/* One word, so that it changes at once: where the path begins, its length, its bytes. */
union header {
	uint64_t word;
	struct {
		uint8_t depth, length, path[KEY_BYTES];
	};
};

struct node {
	union header header LINE_ALIGNED;
	/* Bit i: `bytes[i]` and `children[i]` are valid. */
	uint64_t present;
	uint64_t capacity;
	uint8_t bytes[WIDEST];
	/* Twice the place of a node, or of a leaf plus 1. */
	uint64_t children[WIDEST] LINE_ALIGNED;
};

struct pool {
	uint64_t magic;
	uint64_t ack LINE_ALIGNED;
	uint64_t root LINE_ALIGNED;
	struct node nodes[NODES];
	struct leaf leaves[LEAVES];
};

/* What is in use is known from the tree; place 0 of the nodes is never used, so no link is 0. */
static bool node_used[NODES] = {true}, leaf_used[LEAVES];

static uint8_t byte_of(uint64_t key, unsigned depth)
{
	return (uint8_t)(key >> 8 * (KEY_BYTES - 1 - depth));
}

static uint64_t check_of(uint64_t key, uint64_t value)
{
	return (key ^ value) * UINT64_C(0x2545f4914f6cdd1d);
}

static bool is_leaf(uint64_t link)
{
	return link & 1;
}

static struct node *node_at(struct pool *p, uint64_t link)
{
	return &p->nodes[link / 2];
}

static struct leaf *leaf_at(struct pool *p, uint64_t link)
{
	return &p->leaves[link / 2];
}

static uint64_t new_leaf(struct pool *p, uint64_t key, uint64_t value)
{
	unsigned i = 0;
	while (leaf_used[i])
		i++;
	leaf_used[i] = true;
	struct leaf *l = &p->leaves[i];
	PUT(l->key, key); //~ 8 durability
	PUT(l->value, value); //~ 8 durability
	PUT(l->check, check_of(key, value)); //~ 8 durability
#if !HAS_BUG(8)
	persist(l, sizeof *l);
#endif
	return 2 * i + 1;
}

static struct node *new_node(struct pool *p, uint64_t capacity)
{
	unsigned i = 0;
	while (node_used[i])
		i++;
	node_used[i] = true;
	struct node *n = &p->nodes[i];
	PUT(n->capacity, capacity); //~ 2 ordering
	PUT(n->present, 0); //~ 2 ordering
	return n;
}

static inline uint64_t link_of(struct pool *p, const struct node *n)
{
	return 2 * (uint64_t)(n - p->nodes);
}

static int child_at(const struct node *n, uint8_t byte)
{
	for (int i = 0; i < WIDEST; i++)
		if (n->present >> i & 1 && n->bytes[i] == byte)
			return i;
	return -1;
}

/* Fills a node that is not in the tree yet. */
static void set_child(struct node *n, unsigned i, uint8_t byte, uint64_t link)
{
	PUT(n->bytes[i], byte);
	PUT(n->children[i], link);
	PUT(n->present, n->present | UINT64_C(1) << i);
}

/* Replaces the node behind `*link` by one with room for 16 children. */
static struct node *grow(struct pool *p, uint64_t *link)
{
	struct node *old = node_at(p, *link), *new = new_node(p, WIDEST);
	PUT(new->header.word, old->header.word); //~ 2 ordering
	memcpy(new->bytes, old->bytes, sizeof old->bytes); //~ 2 ordering
	memcpy(new->children, old->children, sizeof old->children); //~ 2 ordering
	PUT(new->present, old->present); //~ 2 ordering
#if HAS_BUG(2)
	flush(new, sizeof *new);
#else
	persist(new, sizeof *new);
#endif
	PUT(*link, link_of(p, new)); //~ 3 durability
#if !HAS_BUG(3)
	persist(link, 8);
#endif
	node_used[old - p->nodes] = false;
	return new;
}

static void add_child(struct pool *p, uint64_t *link, uint8_t byte, uint64_t child)
{
	struct node *n = node_at(p, *link);
	unsigned i = (unsigned)__builtin_ctzll(~n->present);
	if (i >= n->capacity)
		n = grow(p, link);
	PUT(n->bytes[i], byte);
	PUT(n->children[i], child); //~ 1 ordering
#if HAS_BUG(1)
	flush(&n->children[i], 8);
#else
	persist(&n->children[i], 8);
#endif
	PUT(n->present, n->present | UINT64_C(1) << i);
	persist(&n->present, 8);
}

/* A new node above the node behind `*link`, where its path and the key part after `same` bytes. */
static void split_path(struct pool *p, uint64_t *link, unsigned same, uint64_t key, uint64_t leaf)
{
	struct node *below = node_at(p, *link), *above = new_node(p, 4);
	union header old = below->header, upper = old, lower = {.word = 0};
	upper.length = (uint8_t)same;
	lower.depth = (uint8_t)(old.depth + same + 1);
	lower.length = (uint8_t)(old.length - same - 1);
	memcpy(lower.path, old.path + same + 1, lower.length);
	PUT(above->header.word, upper.word);
	set_child(above, 0, old.path[same], *link);
	set_child(above, 1, byte_of(key, old.depth + same), leaf);
	persist(above, sizeof *above);
#if HAS_BUG(4)
	PUT(below->header.word, lower.word); //~ 4 ordering
	persist(&below->header, 8);
	PUT(*link, link_of(p, above)); //~ 4 ordering
	persist(link, 8);
#else
	PUT(*link, link_of(p, above));
	persist(link, 8);
	PUT(below->header.word, lower.word);
	persist(&below->header, 8);
#endif
}

/* A new node in the place of a leaf, with that leaf and another one. */
static void split_leaf(struct pool *p, uint64_t *link, unsigned depth, uint64_t key, uint64_t leaf)
{
	uint64_t other = leaf_at(p, *link)->key;
	struct node *n = new_node(p, 4);
	union header header = {.depth = (uint8_t)depth};
	for (; byte_of(key, depth) == byte_of(other, depth); depth++)
		header.path[header.length++] = byte_of(key, depth);
	PUT(n->header.word, header.word);
	set_child(n, 0, byte_of(other, depth), *link);
	set_child(n, 1, byte_of(key, depth), leaf);
	persist(n, sizeof *n);
	PUT(*link, link_of(p, n));
	persist(link, 8);
}

static void update(struct pool *p, uint64_t *link, uint64_t value)
{
	uint64_t old = *link;
#if HAS_BUG(5)
	struct leaf *l = leaf_at(p, old);
	PUT(l->value, value); //~ 5 atomicity
	PUT(l->check, check_of(l->key, value)); //~ 5 atomicity
	persist(l, sizeof *l);
#else
	PUT(*link, new_leaf(p, leaf_at(p, old)->key, value)); //~ 7 ordering
#if HAS_BUG(7)
	flush(link, 8);
#else
	persist(link, 8);
#endif
	/* Nobody is to find it by accident. */
	PUT(leaf_at(p, old)->key, 0);
	persist(leaf_at(p, old), sizeof(struct leaf));
	leaf_used[old / 2] = false;
#endif
}

static void put(struct pool *p, uint64_t key, uint64_t value)
{
	uint64_t *link = &p->root;
	for (unsigned depth = 0;;) {
		if (is_leaf(*link)) {
			if (leaf_at(p, *link)->key == key)
				update(p, link, value);
			else
				split_leaf(p, link, depth, key, new_leaf(p, key, value));
			return;
		}
		struct node *n = node_at(p, *link);
		for (unsigned i = 0; i < n->header.length; i++)
			if (n->header.path[i] != byte_of(key, depth + i)) {
				split_path(p, link, i, key, new_leaf(p, key, value));
				return;
			}
		depth += n->header.length;
		int child = child_at(n, byte_of(key, depth));
		if (child < 0) {
			add_child(p, link, byte_of(key, depth), new_leaf(p, key, value));
			return;
		}
		link = &n->children[child];
		depth++;
	}
}

static void erase(struct pool *p, uint64_t key)
{
	struct node *n = node_at(p, p->root);
	for (;;) {
		int i = child_at(n, byte_of(key, n->header.depth + n->header.length));
		if (is_leaf(n->children[i])) {
			PUT(n->present, n->present & ~(UINT64_C(1) << i));
			persist(&n->present, 8);
			leaf_used[n->children[i] / 2] = false;
			return;
		}
		n = node_at(p, n->children[i]);
	}
}

/* The first byte of the keys takes more than 4 values, and so does the last below one path; paths are split twice. */
static const uint32_t keys[] = {
	0x11110001, 0x11110002, 0x11110003, 0x11110004, 0x11110005, 0x11110006, 0x11220001, 0x11220002, 0x11112201,
	0x22000001, 0x33000001, 0x44000001, 0x55000001, 0x66000001, 0x22000002, 0x22003301,
};
#define KEYS (sizeof keys / sizeof keys[0])

/* Positive: insert or, if it is there, update; negative: erase. By the key's place in `keys`, from 1. */
static const int script[] = {1, 2, 10, 3, 1, 4, 7, 5, -2, 2, 6, 9, 8, 11, 10, 12, -4, 13, 14, 15, 4, 16, -11, 7, 3, 11};
#define OPERATIONS (sizeof script / sizeof script[0])

static uint64_t value_of(uint64_t operation)
{
	return operation * 7919 + 1;
}

static void run(void *pm)
{
	struct pool *p = pm;
	struct node *root = new_node(p, 4);
	persist(root, sizeof *root);
	PUT(p->root, link_of(p, root));
	persist(&p->root, 8);
	PUT(p->magic, POOL_MAGIC);
	persist(&p->magic, 8);
	for (uint64_t i = 0; i < OPERATIONS; i++) {
		uint64_t key = keys[abs(script[i]) - 1];
		if (script[i] < 0)
			erase(p, key);
		else
			put(p, key, value_of(i));
		PUT(p->ack, i + 1);
		persist(&p->ack, 8);
	}
}

/* The second step of a split of its path: the node is deeper than it knows. */
static void repair_header(struct node *n, unsigned depth)
{
	union header header = n->header;
	unsigned cut = depth - header.depth;
	insist(cut <= header.length, "a path is too short");
#if HAS_BUG(6)
	while (((volatile struct node *)n)->header.depth != depth) //~ 6 recovery
		header.depth++; //~ 6 recovery
#endif
	header.depth = (uint8_t)depth;
	header.length = (uint8_t)(header.length - cut);
	memmove(header.path, header.path + cut, header.length);
	memset(header.path + header.length, 0, KEY_BYTES - header.length);
	PUT(n->header.word, header.word);
	persist(&n->header, 8);
}

/* Takes the values of all leaves below `link`, whose keys begin with `depth` bytes of `path`. */
static void collect(struct pool *p, uint64_t link, unsigned depth, uint64_t path, uint64_t *found)
{
	if (is_leaf(link)) {
		insist(link / 2 < LEAVES && !leaf_used[link / 2], "a leaf is there twice");
		leaf_used[link / 2] = true;
		struct leaf *l = leaf_at(p, link);
		insist(l->key >> 8 * (KEY_BYTES - depth) == path, "a leaf is at the wrong place");
		insist(l->check == check_of(l->key, l->value), "a leaf is torn");
		unsigned i = 0;
		while (i < KEYS && keys[i] != l->key)
			i++;
		insist(i < KEYS, "a key that was never inserted");
		found[i] = l->value;
		return;
	}
	insist(link && link / 2 < NODES && !node_used[link / 2], "a node is there twice");
	node_used[link / 2] = true;
	struct node *n = node_at(p, link);
	insist(n->capacity == 4 || n->capacity == WIDEST, "a node is none");
	insist(n->present >> n->capacity == 0, "a node has too many children");
	insist(n->header.depth <= depth, "a path begins too far down");
	if (n->header.depth < depth)
		repair_header(n, depth);
	insist(depth + n->header.length < KEY_BYTES, "a path is too long");
	for (unsigned i = 0; i < n->header.length; i++)
		path = path << 8 | n->header.path[i];
	for (unsigned i = 0; i < n->capacity; i++) {
		if (!(n->present >> i & 1))
			continue;
		insist(child_at(n, n->bytes[i]) == (int)i, "two children for one byte");
		collect(p, n->children[i], depth + n->header.length + 1, path << 8 | n->bytes[i], found);
	}
}

static int equals_model(const uint64_t *found, uint64_t operations)
{
	uint64_t values[KEYS] = {0};
	if (operations > OPERATIONS)
		return 0;
	for (uint64_t i = 0; i < operations; i++)
		values[abs(script[i]) - 1] = script[i] < 0 ? 0 : value_of(i);
	return memcmp(found, values, sizeof values) == 0;
}

static void check(void *pm)
{
	struct pool *p = pm;
	uint64_t found[KEYS] = {0};
	collect(p, p->root, 0, 0, found);
	insist(equals_model(found, p->ack) || equals_model(found, p->ack + 1), "not what the finished operations left");
}

int main(int argc, char **argv)
{
	return pm_main(argc, argv, sizeof(struct pool), run, check);
}
