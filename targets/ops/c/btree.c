//! A B+-tree whose leaves alone are persistent (after FPTree): unsorted leaves with bitmaps in a chain, an index above them
//! that each start builds anew.
//! variants: 6
//! grammar: ordered.toml
//! together: 1 2 4 5 6 | 3
//! bug 1: lost keys — half a leaf, insert that splits
//! bug 2: lost keys — a leaf without its content, insert that splits
//! bug 3: duplicated keys — in both leaves, insert that splits
//! bug 4: unexpected key, insert
//! bug 5: duplicated key — the old value beside the new, back after a delete, update
//! bug 6: resurrected key, delete
#include "kv.h"

#define SLOTS 8
#define LEAVES 2048

struct leaf {
	uint64_t next LINE_ALIGNED;
	/* Which slots hold items. In the line of `next`: what is stored first reaches PM first. */
	uint64_t bitmap;
	/* The smallest key that may be here; never changes. */
	uint64_t low;
	uint64_t keys[SLOTS] LINE_ALIGNED;
	uint64_t values[SLOTS] LINE_ALIGNED;
};

struct pool {
	uint64_t magic;
	/* Leaves that are taken; the first is the leftmost. */
	uint64_t used LINE_ALIGNED;
	struct leaf leaves[LEAVES];
};

static struct pool *p;
/* The leaves by their keys. */
static struct leaf *leaves[LEAVES];
static size_t leaf_count;

static size_t index_of(uint64_t key)
{
	size_t from = 0, to = leaf_count;
	while (to - from > 1) {
		size_t middle = (from + to) / 2;
		if (leaves[middle]->low <= key)
			from = middle;
		else
			to = middle;
	}
	return from;
}

static unsigned slot_of(const struct leaf *leaf, uint64_t key)
{
	unsigned slot = 0;
	while (slot < SLOTS && !(leaf->bitmap >> slot & 1 && leaf->keys[slot] == key))
		slot++;
	return slot;
}

/* The key in the middle of a full leaf. */
static uint64_t median(const struct leaf *leaf)
{
	for (unsigned slot = 0; slot < SLOTS; slot++) {
		unsigned smaller = 0;
		for (unsigned other = 0; other < SLOTS; other++)
			smaller += leaf->keys[other] < leaf->keys[slot];
		if (smaller == SLOTS / 2)
			return leaf->keys[slot];
	}
	return leaf->keys[0];
}

/* The slots whose keys are not smaller. */
static uint64_t slots_from(const struct leaf *leaf, uint64_t key)
{
	uint64_t slots = 0;
	for (unsigned slot = 0; slot < SLOTS; slot++)
		if (leaf->bitmap >> slot & 1 && leaf->keys[slot] >= key)
			slots |= UINT64_C(1) << slot;
	return slots;
}

static int split(size_t at)
{
	if (p->used == LEAVES)
		return 0;
	struct leaf *left = leaves[at], *right = &p->leaves[p->used];
	PUT(p->used, p->used + 1);
	persist(&p->used, 8);
	PUT(right->low, median(left)); //~ 2 ordering
	uint64_t moved = slots_from(left, right->low);
	for (unsigned slot = 0; slot < SLOTS; slot++) {
		PUT(right->keys[slot], left->keys[slot]); //~ 2 ordering
		PUT(right->values[slot], left->values[slot]); //~ 2 ordering
	}
	PUT(right->next, left->next); //~ 2 ordering
	PUT(right->bitmap, moved); //~ 2 ordering
	flush(right, sizeof *right);
	if (!HAS_BUG(2))
		fence();
	if (HAS_BUG(1)) {
		PUT(left->bitmap, left->bitmap & ~moved); //~ 1 ordering
		PUT(left->next, (uint64_t)(right - p->leaves)); //~ 1 ordering
	} else {
		PUT(left->next, (uint64_t)(right - p->leaves)); //~ 3 atomicity
		PUT(left->bitmap, left->bitmap & ~moved); //~ 3 atomicity
	}
	persist(left, LINE);
	memmove(&leaves[at + 2], &leaves[at + 1], (leaf_count - at - 1) * sizeof *leaves);
	leaves[at + 1] = right;
	leaf_count++;
	return 1;
}

/* Fills a free slot, which does not count yet. */
static uint64_t fill(struct leaf *leaf, uint64_t key, uint64_t value)
{
	unsigned slot = (unsigned)__builtin_ctzll(~leaf->bitmap);
	PUT(leaf->keys[slot], key); //~ 4 ordering
	PUT(leaf->values[slot], value); //~ 4 ordering
	flush(&leaf->keys[slot], 8);
	flush(&leaf->values[slot], 8);
	if (!HAS_BUG(4))
		fence();
	return UINT64_C(1) << slot;
}

static enum answer insert(uint64_t key, uint64_t value)
{
	size_t at = index_of(key);
	if (slot_of(leaves[at], key) < SLOTS)
		return EXISTS;
	if (leaves[at]->bitmap == UINT8_MAX && !split(at))
		return FULL;
	struct leaf *leaf = leaves[index_of(key)];
	PUT(leaf->bitmap, leaf->bitmap | fill(leaf, key, value));
	persist(&leaf->bitmap, 8);
	return DONE;
}

/* Into another slot; one store makes the new item count and the old one not. */
static enum answer update(uint64_t key, uint64_t value)
{
	struct leaf *leaf = leaves[index_of(key)];
	unsigned old = slot_of(leaf, key);
	if (old == SLOTS)
		return MISSING;
	if (leaf->bitmap == UINT8_MAX) {
		PUT(leaf->values[old], value);
		persist(&leaf->values[old], 8);
		return DONE;
	}
	uint64_t bit = fill(leaf, key, value);
	if (HAS_BUG(5)) {
		PUT(leaf->bitmap, leaf->bitmap | bit); //~ 5 atomicity
		persist(&leaf->bitmap, 8);
		bit = 0;
	}
	PUT(leaf->bitmap, (leaf->bitmap | bit) & ~(UINT64_C(1) << old)); //~ 5 atomicity
	persist(&leaf->bitmap, 8);
	return DONE;
}

static enum answer erase(uint64_t key)
{
	struct leaf *leaf = leaves[index_of(key)];
	unsigned slot = slot_of(leaf, key);
	if (slot == SLOTS)
		return MISSING;
	PUT(leaf->bitmap, leaf->bitmap & ~(UINT64_C(1) << slot)); //~ 6 durability
	if (!HAS_BUG(6))
		persist(&leaf->bitmap, 8);
	return DONE;
}

static const uint64_t *find(uint64_t key)
{
	struct leaf *leaf = leaves[index_of(key)];
	unsigned slot = slot_of(leaf, key);
	return slot == SLOTS ? NULL : &leaf->values[slot];
}

static uint64_t count(void)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < leaf_count; i++)
		sum += (uint64_t)__builtin_popcountll(leaves[i]->bitmap);
	return sum;
}

static void each(void (*show)(uint64_t key, uint64_t value))
{
	for (size_t i = 0; i < leaf_count; i++)
		for (unsigned slot = 0; slot < SLOTS; slot++)
			if (leaves[i]->bitmap >> slot & 1)
				show(leaves[i]->keys[slot], leaves[i]->values[slot]);
}

/* Builds the index, and ends a split that was under way. */
static void start(void *pm, int is_new)
{
	p = pm;
	if (is_new) {
		PUT(p->used, 1);
		persist(&p->used, 8);
	}
	struct leaf *leaf = p->leaves;
	for (;;) {
		leaves[leaf_count++] = leaf;
		if (!leaf->next || leaf_count == LEAVES)
			break;
		struct leaf *next = &p->leaves[leaf->next];
		uint64_t moved = slots_from(leaf, next->low);
		if (moved && !HAS_BUG(3)) {
			PUT(leaf->bitmap, leaf->bitmap & ~moved);
			persist(&leaf->bitmap, 8);
		}
		leaf = next;
	}
}

int main(int argc, char **argv)
{
	static const struct kv map = {insert, update, erase, find, count, each};
	return kv_main(argc, argv, sizeof(struct pool), start, &map);
}
