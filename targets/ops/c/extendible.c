//! An extendible hash table: a directory that doubles, buckets that split. A word of intent lets recovery finish a split.
//! variants: 6
//! grammar: kv.toml
//! bug 1: lost keys — a doubled directory that is half empty, insert that doubles the directory
//! bug 2: lost keys — the new bucket is empty, insert that splits
//! bug 3: lost keys — the directory still leads to the old bucket, insert that splits
//! bug 4: duplicated keys — a half-done split, wrong count and lost updates later, insert that splits
//! bug 5: unexpected key or wrong value, insert
//! bug 6: stale value, update
#include "kv.h"

#define SLOTS 4
#define ALL_SLOTS ((1u << SLOTS) - 1)
#define DEPTH_MAX 14
#define BUCKETS 3072

struct bucket {
	/* Depth in the upper half, which slots hold items in the lower: one store splits a bucket. */
	uint64_t head LINE_ALIGNED;
	/* The low bits of the hashes of its keys. */
	uint64_t pattern;
	uint64_t keys[SLOTS] LINE_ALIGNED;
	uint64_t values[SLOTS] LINE_ALIGNED;
};

struct pool {
	uint64_t magic;
	/* Depth of the directory: its first 2^depth entries count. */
	uint64_t depth LINE_ALIGNED;
	/* Buckets that are taken. */
	uint64_t used LINE_ALIGNED;
	/* Old and new bucket of the split that is under way, as halves; or 0. */
	uint64_t intent LINE_ALIGNED;
	uint64_t directory[1 << DEPTH_MAX] LINE_ALIGNED;
	struct bucket buckets[BUCKETS];
};

static struct pool *p;

static uint64_t low_bits(uint64_t hash, uint64_t depth)
{
	return hash & ((UINT64_C(1) << depth) - 1);
}

static uint64_t depth_of(const struct bucket *bucket)
{
	return bucket->head >> 32;
}

static struct bucket *bucket_of(uint64_t key)
{
	return &p->buckets[p->directory[low_bits(kv_hash(key), p->depth)]];
}

static unsigned slot_of(const struct bucket *bucket, uint64_t key)
{
	unsigned slot = 0;
	while (slot < SLOTS && !(bucket->head >> slot & 1 && bucket->keys[slot] == key))
		slot++;
	return slot;
}

static void double_directory(void)
{
	uint64_t half = UINT64_C(1) << p->depth;
	for (uint64_t i = 0; i < half; i++)
		PUT(p->directory[half + i], p->directory[i]); //~ 1 ordering
	flush(&p->directory[half], half * 8);
	if (!HAS_BUG(1))
		fence();
	PUT(p->depth, p->depth + 1);
	persist(&p->depth, 8);
}

/* Leads to the new bucket and takes its items out of the old one. Recovery does it again. */
static void finish_split(struct bucket *old, struct bucket *new)
{
	uint64_t size = UINT64_C(1) << p->depth, step = UINT64_C(1) << depth_of(new);
	for (uint64_t i = new->pattern; i < size; i += step) {
		PUT(p->directory[i], (uint64_t)(new - p->buckets)); //~ 3 durability 4 atomicity
		if (!HAS_BUG(3))
			persist(&p->directory[i], 8);
	}
	if (depth_of(old) < depth_of(new)) {
		PUT(old->head, depth_of(new) << 32 | (uint32_t)(old->head & ~new->head)); //~ 4 atomicity
		persist(&old->head, 8);
	}
	PUT(p->intent, 0);
	persist(&p->intent, 8);
}

/* Each item keeps its slot. */
static int split(struct bucket *old)
{
	if (p->used == BUCKETS || depth_of(old) == DEPTH_MAX)
		return 0;
	if (depth_of(old) == p->depth)
		double_directory();
	struct bucket *new = &p->buckets[p->used];
	PUT(p->used, p->used + 1);
	persist(&p->used, 8);
	uint64_t depth = depth_of(old) + 1, moved = 0;
	PUT(new->pattern, old->pattern | UINT64_C(1) << (depth - 1)); //~ 2 ordering
	for (unsigned slot = 0; slot < SLOTS; slot++) {
		PUT(new->keys[slot], old->keys[slot]); //~ 2 ordering
		PUT(new->values[slot], old->values[slot]); //~ 2 ordering
		if (low_bits(kv_hash(old->keys[slot]), depth) == new->pattern)
			moved |= old->head & UINT64_C(1) << slot;
	}
	PUT(new->head, depth << 32 | moved); //~ 2 ordering
	flush(new, sizeof *new);
	if (!HAS_BUG(2))
		fence();
	if (!HAS_BUG(4)) {
		PUT(p->intent, (uint64_t)(old - p->buckets) << 32 | (uint64_t)(new - p->buckets));
		persist(&p->intent, 8);
	}
	finish_split(old, new);
	return 1;
}

static enum answer insert(uint64_t key, uint64_t value)
{
	if (slot_of(bucket_of(key), key) < SLOTS)
		return EXISTS;
	struct bucket *bucket;
	while ((uint32_t)(bucket = bucket_of(key))->head == ALL_SLOTS)
		if (!split(bucket))
			return FULL;
	unsigned slot = (unsigned)__builtin_ctzll(~bucket->head);
	PUT(bucket->keys[slot], key); //~ 5 ordering
	PUT(bucket->values[slot], value); //~ 5 ordering
	flush(&bucket->keys[slot], 8);
	flush(&bucket->values[slot], 8);
	if (!HAS_BUG(5))
		fence();
	PUT(bucket->head, bucket->head | UINT64_C(1) << slot);
	persist(&bucket->head, 8);
	return DONE;
}

static enum answer update(uint64_t key, uint64_t value)
{
	struct bucket *bucket = bucket_of(key);
	unsigned slot = slot_of(bucket, key);
	if (slot == SLOTS)
		return MISSING;
	PUT(bucket->values[slot], value); //~ 6 durability
	/* Bug 6 flushes the key: the value has a line of its own. */
	persist(HAS_BUG(6) ? &bucket->keys[slot] : &bucket->values[slot], 8);
	return DONE;
}

static enum answer erase(uint64_t key)
{
	struct bucket *bucket = bucket_of(key);
	unsigned slot = slot_of(bucket, key);
	if (slot == SLOTS)
		return MISSING;
	PUT(bucket->head, bucket->head & ~(UINT64_C(1) << slot));
	persist(&bucket->head, 8);
	return DONE;
}

static const uint64_t *find(uint64_t key)
{
	struct bucket *bucket = bucket_of(key);
	unsigned slot = slot_of(bucket, key);
	return slot == SLOTS ? NULL : &bucket->values[slot];
}

static void each(void (*show)(uint64_t key, uint64_t value))
{
	for (uint64_t i = 0; i < UINT64_C(1) << p->depth; i++) {
		const struct bucket *bucket = &p->buckets[p->directory[i]];
		if (i != bucket->pattern)
			continue;
		for (unsigned slot = 0; slot < SLOTS; slot++)
			if (bucket->head >> slot & 1)
				show(bucket->keys[slot], bucket->values[slot]);
	}
}

static uint64_t count(void)
{
	uint64_t sum = 0;
	for (uint64_t i = 0; i < UINT64_C(1) << p->depth; i++) {
		const struct bucket *bucket = &p->buckets[p->directory[i]];
		if (i == bucket->pattern)
			sum += (uint64_t)__builtin_popcount((unsigned)bucket->head);
	}
	return sum;
}

static void start(void *pm, int is_new)
{
	p = pm;
	if (is_new) {
		PUT(p->used, 1);
		persist(&p->used, 8);
	} else if (p->intent) {
		finish_split(&p->buckets[p->intent >> 32], &p->buckets[(uint32_t)p->intent]);
	}
}

int main(int argc, char **argv)
{
	static const struct kv map = {insert, update, erase, find, count, each};
	return kv_main(argc, argv, sizeof(struct pool), start, &map);
}
