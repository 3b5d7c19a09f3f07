//! A log-free hash table with tokens (Witcher fig. 1): one word per bucket says which of its slots are valid; it grows by
//! copying into a table twice as large.
//! variants: 9
//! together: 1 4 6 7 | 2 5 8 | 3 | 9
//! run: {bin} {pool} run
//! recover: {bin} {pool} check
#include "pm.h"

#define SLOTS 5
#define LARGEST 8

struct slot {
	uint64_t key;
	uint64_t version;
	uint64_t value[2];
};

struct bucket {
	/* Bit j: slot j is valid. */
	uint64_t tokens LINE_ALIGNED;
	struct slot slots[SLOTS] LINE_ALIGNED;
};

struct table {
	uint64_t buckets;
	struct bucket bucket[LARGEST] LINE_ALIGNED;
};

struct pool {
	uint64_t magic;
	uint64_t ack LINE_ALIGNED;
	/* Which table is in use, and which one, plus 1, is being filled. */
	uint64_t current LINE_ALIGNED;
	uint64_t filling LINE_ALIGNED;
	struct table tables[3] LINE_ALIGNED;
};

static uint64_t value_of(uint64_t key, uint64_t version, unsigned i)
{
	return (key * 64 + version) * UINT64_C(0x9e3779b97f4a7c15) + i;
}

static struct bucket *bucket_of(struct table *t, uint64_t key)
{
	return &t->bucket[key * 11 / 3 % t->buckets];
}

/* The place of `key`, or of a free slot if the key is 0, or SLOTS. */
static unsigned find(const struct bucket *b, uint64_t key)
{
	for (unsigned j = 0; j < SLOTS; j++)
		if ((b->tokens >> j & 1) == (key != 0) && (key == 0 || b->slots[j].key == key))
			return j;
	return SLOTS;
}

static void fill_slot(struct slot *s, uint64_t key, uint64_t version)
{
	PUT(s->key, key); //~ 1 ordering 2 durability 3 ordering
	PUT(s->version, version); //~ 1 ordering 2 durability 3 ordering
	PUT(s->value[0], value_of(key, version, 0)); //~ 1 ordering 2 durability 3 ordering
	PUT(s->value[1], value_of(key, version, 1)); //~ 1 ordering 2 durability 3 ordering
}

static int insert(struct table *t, uint64_t key, uint64_t version)
{
	struct bucket *b = bucket_of(t, key);
	unsigned j = find(b, 0);
	if (j == SLOTS)
		return 0;
	struct slot *s = &b->slots[j];
	fill_slot(s, key, version);
#if HAS_BUG(1)
	flush(s, sizeof *s);
#elif !HAS_BUG(2) && !HAS_BUG(3)
	persist(s, sizeof *s);
#endif
	PUT(b->tokens, b->tokens | UINT64_C(1) << j);
	persist(&b->tokens, 8);
#if HAS_BUG(3)
	persist(s, sizeof *s);
#endif
	return 1;
}

/* Into a free slot of the same bucket; old and new change places with one store. */
static int update(struct table *t, uint64_t key, uint64_t version)
{
	struct bucket *b = bucket_of(t, key);
	unsigned old = find(b, key), new = find(b, 0);
	if (new == SLOTS)
		return 0;
	struct slot *s = &b->slots[new];
	PUT(s->key, key);
	PUT(s->version, version);
	PUT(s->value[0], value_of(key, version, 0));
	PUT(s->value[1], value_of(key, version, 1));
	persist(s, sizeof *s);
#if HAS_BUG(5)
	PUT(b->tokens, b->tokens & ~(UINT64_C(1) << old)); //~ 5 atomicity
	persist(&b->tokens, 8);
	PUT(b->tokens, b->tokens | UINT64_C(1) << new); //~ 5 atomicity
	persist(&b->tokens, 8);
#else
	PUT(b->tokens, b->tokens ^ (UINT64_C(1) << old | UINT64_C(1) << new)); //~ 4 durability
#if !HAS_BUG(4)
	persist(&b->tokens, 8);
#endif
#endif
	return 1;
}

static void erase(struct table *t, uint64_t key)
{
	struct bucket *b = bucket_of(t, key);
	unsigned j = find(b, key);
#if HAS_BUG(6)
	PUT(b->slots[j].key, 0); //~ 6 ordering
	persist(&b->slots[j].key, 8);
#endif
	PUT(b->tokens, b->tokens & ~(UINT64_C(1) << j)); //~ 6 ordering
	persist(&b->tokens, 8);
}

/* Copies everything into the next table and makes that the current one. */
static void grow(struct pool *p)
{
	struct table *old = &p->tables[p->current];
	uint64_t next = (p->current + 1) % 3;
	struct table *new = &p->tables[next];
	PUT(p->filling, next + 1);
	persist(&p->filling, 8);
	PUT(new->buckets, old->buckets * 2); //~ 8 durability
#if !HAS_BUG(8)
	flush(&new->buckets, 8);
#endif
	memset(new->bucket, 0, new->buckets * sizeof(struct bucket));
	for (uint64_t i = 0; i < old->buckets; i++) {
		struct bucket *from = &old->bucket[i];
		for (unsigned j = 0; j < SLOTS; j++) {
			if (!(from->tokens >> j & 1))
				continue;
			struct bucket *to = bucket_of(new, from->slots[j].key);
			unsigned place = find(to, 0);
			memcpy(&to->slots[place], &from->slots[j], sizeof(struct slot)); //~ 7 ordering
			PUT(to->tokens, to->tokens | UINT64_C(1) << place); //~ 7 ordering
		}
	}
#if HAS_BUG(7)
	flush(new->bucket, new->buckets * sizeof(struct bucket));
#else
	persist(new->bucket, new->buckets * sizeof(struct bucket));
#endif
	PUT(p->current, next);
	persist(&p->current, 8);
	PUT(p->filling, 0);
	persist(&p->filling, 8);
}

/* Positive: insert or, if it is there, update; negative: erase. The table grows twice. */
static const int script[] = {3, 8, 14, 8, 21, -14, 5, 9, 11, 3, 17, 2, 26, -9, 14, 21, 6, 23, 30, 12, 7, 15, -3, 28, 5, 19, 1, 17, 24, -23, 3, 9};
#define OPERATIONS (sizeof script / sizeof script[0])
#define KEYS 32

static void run(void *pm)
{
	struct pool *p = pm;
	PUT(p->tables[0].buckets, 2);
	persist(&p->tables[0].buckets, 8);
	PUT(p->magic, POOL_MAGIC);
	persist(&p->magic, 8);
	for (uint64_t i = 0; i < OPERATIONS; i++) {
		uint64_t key = (uint64_t)abs(script[i]);
		struct table *t = &p->tables[p->current];
		if (script[i] < 0) {
			erase(t, key);
		} else {
			int there = find(bucket_of(t, key), key) != SLOTS;
			while (!(there ? update(t, key, i) : insert(t, key, i))) {
				grow(p);
				t = &p->tables[p->current];
			}
		}
		PUT(p->ack, i + 1);
		persist(&p->ack, 8);
	}
}

static int equals_model(const uint64_t *found, uint64_t operations)
{
	uint64_t versions[KEYS] = {0};
	if (operations > OPERATIONS)
		return 0;
	for (uint64_t i = 0; i < operations; i++)
		versions[abs(script[i])] = script[i] < 0 ? 0 : i + 1;
	return memcmp(found, versions, sizeof versions) == 0;
}

/* A table that was being filled is either current by now, or given up. */
static void end_growth(struct pool *p)
{
	insist(p->filling <= 3, "no such table is being filled");
#if HAS_BUG(9)
	/* How full it would become. */
	struct table *t = &p->tables[p->filling - 1];
	uint64_t load = LARGEST * SLOTS / *(volatile uint64_t *)&t->buckets; //~ 9 recovery
	insist(load >= SLOTS, "a table has too many buckets");
#endif
	PUT(p->filling, 0);
	persist(&p->filling, 8);
}

static void check(void *pm)
{
	struct pool *p = pm;
	if (p->filling)
		end_growth(p);
	insist(p->current < 3, "no such table");
	struct table *t = &p->tables[p->current];
	insist(t->buckets == 2 || t->buckets == 4 || t->buckets == 8, "a table without buckets");
	uint64_t found[KEYS] = {0};
	for (uint64_t i = 0; i < t->buckets; i++) {
		struct bucket *b = &t->bucket[i];
		insist(b->tokens < 1 << SLOTS, "a token without a slot");
		for (unsigned j = 0; j < SLOTS; j++) {
			struct slot *s = &b->slots[j];
			if (!(b->tokens >> j & 1))
				continue;
			insist(s->key > 0 && s->key < KEYS && bucket_of(t, s->key) == b, "a key is in the wrong bucket");
			insist(!found[s->key], "a key is there twice");
			insist(s->value[0] == value_of(s->key, s->version, 0) && s->value[1] == value_of(s->key, s->version, 1),
			       "a value is torn");
			found[s->key] = s->version + 1;
		}
	}
	insist(equals_model(found, p->ack) || equals_model(found, p->ack + 1), "not what the finished operations left");
}

int main(int argc, char **argv)
{
	return pm_main(argc, argv, sizeof(struct pool), run, check);
}
