//! A hash table of two levels (after Level hashing): tokens commit; a full table grows by draining its lower level upwards.
//! variants: 8
//! grammar: kv.toml
//! together: 1 2 3 4 6 7 | 5 | 8
//! bug 1: wrong value — a new key is there with another value, insert
//! bug 2: resurrected key — a deleted key is back in the slot of a new one, insert
//! bug 3: lost key — neither the old nor the new value, update
//! bug 4: duplicated key — counted twice, and back after a delete, insert that grows
//! bug 5: lost keys — a half-done resize, insert that grows
//! bug 6: wrong count, insert and delete
//! bug 7: resurrected key, delete
//! bug 8: lost keys — a half-done resize that recovery does not know of, insert that grows
#include "kv.h"

#define SLOTS 4
#define LEVELS 11

struct bucket {
	/* Which slots hold items. Shares its line with the keys: a key stored before the token reaches PM before it. */
	uint64_t token LINE_ALIGNED;
	uint64_t keys[SLOTS];
	uint64_t values[SLOTS] LINE_ALIGNED;
};

struct pool {
	uint64_t magic;
	/* Number of the lower level, doubled; the upper one is the next. Odd while the lower one is being drained. */
	uint64_t state LINE_ALIGNED;
	uint64_t count LINE_ALIGNED;
	/* Level n has 2^n buckets and begins at bucket 2^n - 1. */
	struct bucket buckets[(1 << LEVELS) - 1];
};

struct place {
	struct bucket *bucket;
	unsigned slot;
};

static struct pool *p;

static unsigned lower(void)
{
	return (unsigned)(p->state >> 1);
}

static struct bucket *candidate(unsigned level, uint64_t key, unsigned which)
{
	uint64_t hash = kv_hash(key) >> (which ? 32 : 0);
	return &p->buckets[(1u << level) - 1 + (hash & ((1u << level) - 1))];
}

static struct place find_in(unsigned level, uint64_t key)
{
	for (unsigned which = 0; which < 2; which++)
		for (unsigned slot = 0; slot < SLOTS; slot++) {
			struct bucket *bucket = candidate(level, key, which);
			if (bucket->token >> slot & 1 && bucket->keys[slot] == key)
				return (struct place){bucket, slot};
		}
	return (struct place){NULL, 0};
}

static struct place locate(uint64_t key)
{
	struct place upper = find_in(lower() + 1, key);
	return upper.bucket ? upper : find_in(lower(), key);
}

static struct place free_in(unsigned level, uint64_t key)
{
	for (unsigned which = 0; which < 2; which++)
		for (unsigned slot = 0; slot < SLOTS; slot++) {
			struct bucket *bucket = candidate(level, key, which);
			if (!(bucket->token >> slot & 1))
				return (struct place){bucket, slot};
		}
	return (struct place){NULL, 0};
}

static void set(struct place at, uint64_t key, uint64_t value)
{
	struct bucket *bucket = at.bucket;
	uint64_t bit = UINT64_C(1) << at.slot;
	PUT(bucket->values[at.slot], value); //~ 1 ordering
	flush(&bucket->values[at.slot], 8);
	if (!HAS_BUG(1))
		fence();
	if (HAS_BUG(2)) {
		PUT(bucket->token, bucket->token | bit); //~ 2 ordering
		PUT(bucket->keys[at.slot], key); //~ 2 ordering
	} else {
		PUT(bucket->keys[at.slot], key);
		PUT(bucket->token, bucket->token | bit); //~ 4 atomicity 8 atomicity
	}
	persist(bucket, LINE);
}

static void clear(struct place at)
{
	PUT(at.bucket->token, at.bucket->token & ~(UINT64_C(1) << at.slot)); //~ 4 atomicity 7 durability 8 atomicity
	if (!HAS_BUG(7))
		persist(&at.bucket->token, 8);
}

static void add_to_count(uint64_t difference)
{
	PUT(p->count, p->count + difference); //~ 6 atomicity
	persist(&p->count, 8);
}

/* Every item of the lower level moves two levels up; it is for a while in both. */
static void drain(void)
{
	struct bucket *end = &p->buckets[(2u << lower()) - 1];
	for (struct bucket *bucket = &p->buckets[(1u << lower()) - 1]; bucket < end; bucket++)
		for (unsigned slot = 0; slot < SLOTS; slot++) {
			if (!(bucket->token >> slot & 1))
				continue;
			uint64_t key = bucket->keys[slot];
			if (HAS_BUG(4) || !find_in(lower() + 2, key).bucket)
				set(free_in(lower() + 2, key), key, bucket->values[slot]);
			clear((struct place){bucket, slot});
		}
	PUT(p->state, (lower() + 1) * 2);
	persist(&p->state, 8);
}

static int grow(void)
{
	if (lower() + 3 > LEVELS)
		return 0;
	if (HAS_BUG(5)) {
		/* The lower level is out of sight before its items have moved. */
		unsigned old = lower();
		PUT(p->state, (old + 1) * 2); //~ 5 ordering
		persist(&p->state, 8);
		for (unsigned i = (1u << old) - 1; i < (2u << old) - 1; i++)
			for (unsigned slot = 0; slot < SLOTS; slot++)
				if (p->buckets[i].token >> slot & 1) {
					uint64_t key = p->buckets[i].keys[slot];
					set(free_in(old + 2, key), key, p->buckets[i].values[slot]);
				}
		return 1;
	}
	if (!HAS_BUG(8)) {
		PUT(p->state, p->state | 1);
		persist(&p->state, 8);
	}
	drain();
	return 1;
}

static enum answer insert(uint64_t key, uint64_t value)
{
	if (locate(key).bucket)
		return EXISTS;
	for (;;) {
		struct place at = free_in(lower() + 1, key);
		if (!at.bucket)
			at = free_in(lower(), key);
		if (at.bucket) {
			set(at, key, value);
			add_to_count(1);
			return DONE;
		}
		if (!grow())
			return FULL;
	}
}

static enum answer update(uint64_t key, uint64_t value)
{
	struct place at = locate(key);
	if (!at.bucket)
		return MISSING;
	if (HAS_BUG(3)) {
		PUT(at.bucket->token, at.bucket->token & ~(UINT64_C(1) << at.slot)); //~ 3 atomicity
		persist(&at.bucket->token, 8);
		set(at, key, value);
		return DONE;
	}
	PUT(at.bucket->values[at.slot], value);
	persist(&at.bucket->values[at.slot], 8);
	return DONE;
}

static enum answer erase(uint64_t key)
{
	struct place at = locate(key);
	if (!at.bucket)
		return MISSING;
	clear(at);
	add_to_count(-UINT64_C(1));
	return DONE;
}

static const uint64_t *find(uint64_t key)
{
	struct place at = locate(key);
	return at.bucket ? &at.bucket->values[at.slot] : NULL;
}

static uint64_t count(void)
{
	return p->count;
}

static void each(void (*show)(uint64_t key, uint64_t value))
{
	struct bucket *end = &p->buckets[(4u << lower()) - 1];
	for (struct bucket *bucket = &p->buckets[(1u << lower()) - 1]; bucket < end; bucket++)
		for (unsigned slot = 0; slot < SLOTS; slot++)
			if (bucket->token >> slot & 1)
				show(bucket->keys[slot], bucket->values[slot]);
}

static uint64_t found;

static void count_one(uint64_t key, uint64_t value)
{
	(void)key, (void)value;
	found++;
}

static void start(void *pm, int is_new)
{
	p = pm;
	if (is_new)
		return;
	if (p->state & 1)
		drain();
	found = 0;
	each(count_one);
	if (found != p->count && !HAS_BUG(6)) {
		PUT(p->count, found);
		persist(&p->count, 8);
	}
}

int main(int argc, char **argv)
{
	static const struct kv map = {insert, update, erase, find, count, each};
	return kv_main(argc, argv, sizeof(struct pool), start, &map);
}
