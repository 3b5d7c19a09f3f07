//! Extendible hashing: full segments split in two under a record that recovery completes; the directory doubles by copying.
//! variants: 8
//! together: 1 3 7 8 | 2 4 | 6 | 5
//! run: {bin} {pool} run
//! recover: {bin} {pool} check
#include <stdbool.h>
#define PM_FLUSH _mm_clflushopt
#include "pm.h"

#define PAIRS 3
#define SEGMENTS 48
#define DEEPEST 5

struct pair {
	/* 0: free. Written after the value, in the same line. */
	uint64_t key;
	uint64_t value;
};

struct segment {
	uint64_t depth LINE_ALIGNED;
	struct pair pairs[PAIRS] LINE_ALIGNED;
};

struct directory {
	uint64_t depth LINE_ALIGNED;
	uint64_t segments[1 << DEEPEST] LINE_ALIGNED;
};

struct pool {
	uint64_t magic;
	uint64_t ack LINE_ALIGNED;
	uint64_t directory LINE_ALIGNED;
#if HAS_BUG(6)
	uint64_t depth LINE_ALIGNED;
#endif
	uint64_t used LINE_ALIGNED;
	/* The split under way; `splitting` says if there is one. */
	struct {
		uint64_t old, left, right;
	} split LINE_ALIGNED;
	uint64_t splitting LINE_ALIGNED;
	struct directory directories[DEEPEST];
	struct segment segments[SEGMENTS];
};

static uint64_t hash(uint64_t key)
{
	return key * UINT64_C(0x9e3779b97f4a7c15) >> 40;
}

static struct directory *directory(struct pool *p)
{
	return &p->directories[p->directory];
}

static uint64_t depth(struct pool *p)
{
#if HAS_BUG(6)
	return p->depth;
#else
	return directory(p)->depth;
#endif
}

static struct segment *segment_of(struct pool *p, uint64_t key)
{
	uint64_t at = hash(key) & ((UINT64_C(1) << depth(p)) - 1);
	return &p->segments[directory(p)->segments[at]];
}

static struct pair *find(struct segment *s, uint64_t key)
{
	for (struct pair *pair = s->pairs; pair < s->pairs + PAIRS; pair++)
		if (pair->key == key)
			return pair;
	return NULL;
}

static void double_directory(struct pool *p)
{
	struct directory *old = directory(p), *new = old + 1;
	uint64_t entries = UINT64_C(1) << depth(p);
	PUT(new->depth, depth(p) + 1); //~ 1 ordering
	for (uint64_t i = 0; i < 2 * entries; i++)
		PUT(new->segments[i], old->segments[i % entries]); //~ 1 ordering 2 durability
	flush(&new->depth, 8);
#if HAS_BUG(2)
	flush(new->segments, entries * 8);
#else
	flush(new->segments, 2 * entries * 8);
#endif
#if !HAS_BUG(1)
	fence();
#endif
	PUT(p->directory, p->directory + 1); //~ 6 atomicity
	persist(&p->directory, 8);
#if HAS_BUG(6)
	PUT(p->depth, new->depth); //~ 6 atomicity
	persist(&p->depth, 8);
#endif
}

/* Lets the directory's entries of the old segment point to its two halves. Can be done again. */
static void redirect(struct pool *p)
{
	struct directory *d = directory(p);
	uint64_t bit = p->segments[p->split.old].depth;
	for (uint64_t i = 0; i < UINT64_C(1) << depth(p); i++) {
		if (d->segments[i] != p->split.old)
			continue;
		PUT(d->segments[i], i >> bit & 1 ? p->split.right : p->split.left); //~ 4 atomicity
		flush(&d->segments[i], 8);
	}
	fence();
	PUT(p->splitting, false);
	persist(&p->splitting, 8);
}

static void fill_halves(struct segment *old, struct segment *left, struct segment *right)
{
	unsigned filled[2] = {0, 0};
	PUT(left->depth, old->depth + 1);  //~ 3 ordering
	PUT(right->depth, old->depth + 1); //~ 3 ordering
	for (unsigned i = 0; i < PAIRS; i++) {
		unsigned half = hash(old->pairs[i].key) >> old->depth & 1;
		struct pair *to = &(half ? right : left)->pairs[filled[half]++];
		*to = old->pairs[i]; //~ 3 ordering
	}
}

static void split(struct pool *p, struct segment *old)
{
	if (old->depth == depth(p))
		double_directory(p);
	uint64_t left = p->used, right = left + 1;
	PUT(p->used, right + 1);
	persist(&p->used, 8);
	fill_halves(old, &p->segments[left], &p->segments[right]);
#if !HAS_BUG(3)
	persist(&p->segments[left], 2 * sizeof(struct segment));
#endif
	PUT(p->split.old, (uint64_t)(old - p->segments)); //~ 8 ordering
	PUT(p->split.left, left); //~ 8 ordering
	PUT(p->split.right, right); //~ 8 ordering
#if HAS_BUG(8)
	flush(&p->split, sizeof p->split);
#else
	persist(&p->split, sizeof p->split);
#endif
#if !HAS_BUG(4)
	PUT(p->splitting, true);
	persist(&p->splitting, 8);
#endif
	redirect(p);
#if HAS_BUG(3)
	persist(&p->segments[left], 2 * sizeof(struct segment));
#endif
}

static void put(struct pool *p, uint64_t key, uint64_t value)
{
	struct pair *pair = find(segment_of(p, key), key);
	if (pair) {
		PUT(pair->value, value);
		persist(&pair->value, 8);
		return;
	}
	while (!(pair = find(segment_of(p, key), 0)))
		split(p, segment_of(p, key));
	PUT(pair->value, value); //~ 7 durability
	PUT(pair->key, key); //~ 7 durability
#if !HAS_BUG(7)
	persist(pair, sizeof *pair);
#endif
}

static void erase(struct pool *p, uint64_t key)
{
	struct pair *pair = find(segment_of(p, key), key);
	PUT(pair->key, 0);
	persist(&pair->key, 8);
}

/* Positive: insert or, if it is there, update; negative: erase. */
static const int script[] = {5, 12, 7, 20, 3, 12, 9, -7, 16, 25, 1, 14, 22, -5, 30, 7, 18, 2, 27, 9, 11, -30, 6, 24, 29, 13, 4, 19, 28, -25, 10, 23, 8};
#define OPERATIONS (sizeof script / sizeof script[0])
#define KEYS 31

static uint64_t value_of(uint64_t key, uint64_t operation)
{
	return key << 32 | (operation + 1);
}

static void run(void *pm)
{
	struct pool *p = pm;
	struct directory *d = directory(p);
	PUT(d->depth, 1);
	PUT(d->segments[1], 1);
	PUT(p->segments[0].depth, 1);
	PUT(p->segments[1].depth, 1);
	PUT(p->used, 2);
	flush(d, sizeof *d);
	flush(p->segments, 2 * sizeof(struct segment));
#if HAS_BUG(6)
	PUT(p->depth, 1);
	flush(&p->depth, 8);
#endif
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

static void complete_split(struct pool *p)
{
	insist(p->split.old < p->used && p->split.left < p->used && p->split.right < p->used, "a split of no segment");
	insist(p->split.left != p->split.right && p->split.old < p->split.left, "a split without halves");
#if HAS_BUG(5)
	/* An entry that the split has changed already says how deep the halves are. */
	struct segment *half = NULL;
	for (uint64_t i = 0; i < UINT64_C(1) << depth(p); i++)
		if (directory(p)->segments[i] == p->split.right)
			half = &p->segments[p->split.right];
	insist(*(volatile uint64_t *)&half->depth <= depth(p), "a half is deeper than the directory"); //~ 5 recovery
#endif
	redirect(p);
}

static void check(void *pm)
{
	struct pool *p = pm;
	insist(p->directory < DEEPEST && p->used <= SEGMENTS, "no such directory");
	insist(depth(p) == p->directory + 1, "the directory has the wrong depth");
	if (p->splitting)
		complete_split(p);
	uint64_t found[KEYS] = {0};
	const uint64_t *entries = directory(p)->segments;
	for (uint64_t i = 0; i < UINT64_C(1) << depth(p); i++) {
		insist(entries[i] < p->used, "an entry of no segment");
		struct segment *s = &p->segments[entries[i]];
		insist(s->depth > 0 && s->depth <= depth(p), "a segment is too deep");
		uint64_t mask = (UINT64_C(1) << s->depth) - 1;
		if (i & ~mask) {
			insist(entries[i & mask] == entries[i], "entries of one segment disagree");
			continue;
		}
		for (uint64_t j = i; j < UINT64_C(1) << depth(p); j += mask + 1)
			insist(entries[j] == entries[i], "entries of one segment disagree");
		for (unsigned j = 0; j < PAIRS; j++) {
			uint64_t key = s->pairs[j].key;
			if (!key)
				continue;
			insist(key < KEYS && (hash(key) & mask) == i, "a key is in the wrong segment");
			insist(!found[key], "a key is there twice");
			found[key] = s->pairs[j].value;
		}
	}
	insist(equals_model(found, p->ack) || equals_model(found, p->ack + 1), "not what the finished operations left");
}

int main(int argc, char **argv)
{
	return pm_main(argc, argv, sizeof(struct pool), run, check);
}
