//! A crit-bit tree: an insertion or a deletion is one store of a link. There is nothing to recover.
//! variants: 6
//! grammar: ordered.toml
//! together: 1 2 3 4 5 | 6
//! bug 1: crash of a later operation — a fork without its branches, insert
//! bug 2: crash of a later operation — a fork with one branch, delete
//! bug 3: lost and unexpected keys — later operations take places that are in use, insert
//! bug 4: wrong value — 0, insert
//! bug 5: stale value, update
//! bug 6: lost keys — a whole subtree, insert
#include "kv.h"

#define PLACES 6144

struct leaf {
	uint64_t key, value;
};

/* Keys that agree in all bits above `bit` and differ in it. */
struct fork {
	uint64_t bit;
	uint64_t branches[2];
};

struct place {
	union {
		struct leaf leaf;
		struct fork fork;
	} LINE_ALIGNED;
};

struct pool {
	uint64_t magic;
	/* A link: the number of a place, doubled, and 1 more for a fork; 0 for an empty tree. */
	uint64_t root LINE_ALIGNED;
	/* Places that are taken; number 0 is none. */
	uint64_t used LINE_ALIGNED;
	struct place places[PLACES];
};

static struct pool *p;

static int is_fork(uint64_t link)
{
	return link & 1;
}

static struct fork *fork_at(uint64_t link)
{
	return &p->places[link / 2].fork;
}

/* A tree has no empty branches. */
static struct leaf *leaf_at(uint64_t link)
{
	return link ? &p->places[link / 2].leaf : NULL;
}

static unsigned side(const struct fork *fork, uint64_t key)
{
	return key >> fork->bit & 1;
}

/* The link to a fork for `bit` or a lower one, or to a leaf, on the way to the key. No way is longer than a key has bits. */
static uint64_t *descend(uint64_t key, int64_t bit, uint64_t **above)
{
	uint64_t *from = &p->root;
	for (int i = 0; i < 64 && is_fork(*from) && (int64_t)fork_at(*from)->bit > bit; i++) {
		*above = from;
		from = &fork_at(*from)->branches[side(fork_at(*from), key)];
	}
	return from;
}

/* The only leaf that can have this key. */
static struct leaf *nearest(uint64_t key)
{
	uint64_t *above;
	return leaf_at(*descend(key, -1, &above));
}

static uint64_t take(void)
{
	uint64_t place = p->used;
	PUT(p->used, place + 1); //~ 3 durability
	if (!HAS_BUG(3))
		persist(&p->used, 8);
	return place;
}

static enum answer insert(uint64_t key, uint64_t value)
{
	struct leaf *other = NULL;
	if (p->root) {
		other = nearest(key);
		if (other->key == key)
			return EXISTS;
	}
	if (p->used + 2 > PLACES)
		return FULL;
	uint64_t link = take() * 2;
	struct leaf *leaf = leaf_at(link);
	PUT(leaf->key, key);
	if (!HAS_BUG(4))
		PUT(leaf->value, value);
	persist(leaf, sizeof *leaf);
	uint64_t *from = &p->root;
	if (other) {
		uint64_t bit = 63 - (uint64_t)__builtin_clzll(other->key ^ key);
		uint64_t *above;
		from = descend(key, (int64_t)bit, &above);
		uint64_t new = take() * 2 + 1;
		struct fork *fork = fork_at(new);
		PUT(fork->bit, bit); //~ 1 ordering
		PUT(fork->branches[key >> bit & 1], link); //~ 1 ordering
		if (!HAS_BUG(6))
			PUT(fork->branches[~key >> bit & 1], *from); //~ 1 ordering
		flush(fork, sizeof *fork);
		if (!HAS_BUG(1))
			fence();
		if (HAS_BUG(6)) {
			/* What was here hangs on the new leaf until the fork has it. */
			PUT(fork->branches[~key >> bit & 1], link); //~ 6 ordering
			persist(fork, sizeof *fork);
			uint64_t old = *from;
			PUT(*from, new); //~ 6 ordering
			persist(from, 8);
			PUT(fork->branches[~key >> bit & 1], old); //~ 6 ordering
			persist(fork, sizeof *fork);
			return DONE;
		}
		link = new;
	}
	PUT(*from, link); //~ 4 ordering
	persist(from, 8);
	if (HAS_BUG(4)) {
		PUT(leaf->value, value); //~ 4 ordering
		persist(&leaf->value, 8);
	}
	return DONE;
}

static enum answer update(uint64_t key, uint64_t value)
{
	struct leaf *leaf = p->root ? nearest(key) : NULL;
	if (!leaf || leaf->key != key)
		return MISSING;
	PUT(leaf->value, value); //~ 5 durability
	if (!HAS_BUG(5))
		persist(&leaf->value, 8);
	return DONE;
}

static enum answer erase(uint64_t key)
{
	if (!p->root || nearest(key)->key != key)
		return MISSING;
	uint64_t *above = NULL, *from = descend(key, -1, &above);
	if (!above) {
		PUT(p->root, 0);
		persist(&p->root, 8);
		return DONE;
	}
	uint64_t rest = fork_at(*above)->branches[!side(fork_at(*above), key)];
	if (HAS_BUG(2)) {
		PUT(*from, 0); //~ 2 ordering
		persist(from, 8);
	}
	PUT(*above, rest); //~ 2 ordering
	persist(above, 8);
	return DONE;
}

static const uint64_t *find(uint64_t key)
{
	struct leaf *leaf = p->root ? nearest(key) : NULL;
	return leaf && leaf->key == key ? &leaf->value : NULL;
}

static void walk(uint64_t link, void (*show)(uint64_t key, uint64_t value))
{
	if (is_fork(link)) {
		walk(fork_at(link)->branches[0], show);
		walk(fork_at(link)->branches[1], show);
	} else {
		show(leaf_at(link)->key, leaf_at(link)->value);
	}
}

static void each(void (*show)(uint64_t key, uint64_t value))
{
	if (p->root)
		walk(p->root, show);
}

static uint64_t leaves;

static void count_leaf(uint64_t key, uint64_t value)
{
	(void)key, (void)value;
	leaves++;
}

static uint64_t count(void)
{
	leaves = 0;
	each(count_leaf);
	return leaves;
}

static void start(void *pm, int is_new)
{
	p = pm;
	if (is_new) {
		PUT(p->used, 1);
		persist(&p->used, 8);
	}
}

int main(int argc, char **argv)
{
	static const struct kv map = {insert, update, erase, find, count, each};
	return kv_main(argc, argv, sizeof(struct pool), start, &map);
}
