//! A hash map on libpmemobj's atomic lists, with a counter behind a dirty flag (as PMDK's hashmap_atomic has).
//! variants: 8
//! run: {bin} {pool} run
//! recover: {bin} {pool} check
//! env: PMEM_IS_PMEM_FORCE=1
//! flags: -lpmemobj
//
// Variant 2 is the shape of PMFuzz's bug 6 (section 5.4): the counter is not repaired when the pool is opened.
#include "obj.h"

#define KEYS 16
#define BUCKETS 3
#define WORDS 10

POBJ_LAYOUT_BEGIN(atomic_map);
POBJ_LAYOUT_ROOT(atomic_map, struct root);
POBJ_LAYOUT_TOID(atomic_map, struct map);
POBJ_LAYOUT_TOID(atomic_map, struct item);
POBJ_LAYOUT_END(atomic_map);

/* The content of an item is written beside the current one. */
struct content {
	uint64_t version;
	uint64_t words[WORDS];
};

struct item {
	POBJ_LIST_ENTRY(struct item) link;
	uint64_t key;
	uint64_t current;
	uint64_t apart[6];
	struct content contents[2];
};

struct map {
	/* The last one holds items that are put aside. */
	POBJ_LIST_HEAD(bucket, struct item) buckets[BUCKETS + 1];
	uint64_t apart[8];
	uint64_t count;
	uint64_t apart2[8];
	uint64_t is_dirty;
};

struct root {
	TOID(struct map) map;
	uint64_t apart[8];
	/* Operations that are finished. */
	uint64_t ack;
};

/* 'm' puts an item aside, or back. */
static const struct op OPS[] = {
	{'i', 5}, {'i', 8}, {'u', 8}, {'m', 5}, {'d', 8}, {'i', 2}, {'m', 5},
};
#define OP_COUNT (sizeof OPS / sizeof *OPS)

static PMEMobjpool *pool;
static TOID(struct map) map;

static void counter_begin(void)
{
	PUT(D_RW(map)->is_dirty, 1);
	pmemobj_persist(pool, &D_RW(map)->is_dirty, sizeof(uint64_t));
}

static void counter_end(int change)
{
	PUT(D_RW(map)->count, D_RO(map)->count + (uint64_t)change); //~ 2 atomicity 5 durability
#if !HAS_BUG(5)
	pmemobj_persist(pool, &D_RW(map)->count, sizeof(uint64_t));
#endif
	PUT(D_RW(map)->is_dirty, 0);
	pmemobj_persist(pool, &D_RW(map)->is_dirty, sizeof(uint64_t));
}

struct arguments {
	uint64_t key;
	uint64_t version;
};

static int construct(PMEMobjpool *pop, void *place, void *arguments)
{
	struct item *item = place;
	const struct arguments *from = arguments;
	item->key = from->key;
	item->current = 0;
	item->contents[0].version = from->version;
	for (unsigned i = 0; i < WORDS; i++)
		PUT(item->contents[0].words[i], mix(from->key + i, from->version)); //~ 1 durability
	/* What is behind it is not read before it is written. */
	size_t bytes = offsetof(struct item, contents) + sizeof(struct content);
#if HAS_BUG(1)
	bytes = offsetof(struct item, contents) + 16;
#endif
	pmemobj_persist(pop, &item->key, bytes - offsetof(struct item, key));
	return 0;
}

static struct bucket *bucket_of(uint64_t key)
{
	return &D_RW(map)->buckets[key % BUCKETS];
}

static TOID(struct item) find(struct bucket *bucket, uint64_t key)
{
	TOID(struct item) item;
	POBJ_LIST_FOREACH(item, bucket, link)
		if (D_RO(item)->key == key)
			break;
	return item;
}

static void insert(uint64_t key, uint64_t version)
{
	struct arguments arguments = {key, version};
	counter_begin();
	POBJ_LIST_INSERT_NEW_HEAD(pool, bucket_of(key), link, sizeof(struct item), construct, &arguments); //~ 2 atomicity
	counter_end(1);
}

static void update(uint64_t key, uint64_t version)
{
	TOID(struct item) found = find(bucket_of(key), key);
	if (TOID_IS_NULL(found))
		found = find(&D_RW(map)->buckets[BUCKETS], key);
	struct item *item = D_RW(found);
	uint64_t other = !item->current;
	PUT(item->contents[other].version, version); //~ 3 ordering
	for (unsigned i = 0; i < WORDS; i++)
		PUT(item->contents[other].words[i], mix(key + i, version)); //~ 3 ordering 7 durability
#if HAS_BUG(7)
	pmemobj_persist(pool, &item->contents[other], sizeof item->contents[other].version);
#elif HAS_BUG(3)
	pmemobj_flush(pool, &item->contents[other], sizeof item->contents[other]);
#else
	pmemobj_persist(pool, &item->contents[other], sizeof item->contents[other]);
#endif
	PUT(item->current, other);
	pmemobj_persist(pool, &item->current, sizeof item->current);
}

static void delete(uint64_t key)
{
	struct bucket *bucket = bucket_of(key);
	TOID(struct item) item = find(bucket, key);
	counter_begin();
#if HAS_BUG(4)
	POBJ_LIST_REMOVE(pool, bucket, item, link); //~ 4 atomicity
	POBJ_FREE(&item); //~ 4 atomicity
#else
	POBJ_LIST_REMOVE_FREE(pool, bucket, item, link); //~ 2 atomicity
#endif
	counter_end(-1);
}

static void move(uint64_t key)
{
	struct bucket *from = bucket_of(key);
	struct bucket *to = &D_RW(map)->buckets[BUCKETS];
	TOID(struct item) item = find(from, key);
	if (TOID_IS_NULL(item)) {
		struct bucket *bucket = from;
		from = to;
		to = bucket;
		item = find(from, key);
	}
#if HAS_BUG(6)
	POBJ_LIST_REMOVE(pool, from, item, link); //~ 6 atomicity
	POBJ_LIST_INSERT_HEAD(pool, to, item, link); //~ 6 atomicity
#else
	POBJ_LIST_MOVE_ELEMENT_HEAD(pool, from, to, item, link, link);
#endif
}

static void run(const char *path)
{
	pool = create_pool(path, POBJ_LAYOUT_NAME(atomic_map));
	TOID(struct root) root = POBJ_ROOT(pool, struct root);
	POBJ_ZNEW(pool, &D_RW(root)->map, struct map);
	map = D_RO(root)->map;
	uint64_t *ack = &D_RW(root)->ack;
	for (uint64_t i = 0; i < OP_COUNT; i++) {
		if (OPS[i].kind == 'i')
			insert(OPS[i].key, i + 1);
		else if (OPS[i].kind == 'u')
			update(OPS[i].key, i + 1);
		else if (OPS[i].kind == 'm')
			move(OPS[i].key);
		else
			delete(OPS[i].key);
		PUT(*ack, i + 1);
		pmemobj_persist(pool, ack, sizeof *ack);
	}
	pmemobj_close(pool);
}

/* Counts again if an operation was under way. */
static void recount(void)
{
	uint64_t count = 0;
	for (unsigned b = 0; b <= BUCKETS; b++) {
		TOID(struct item) item;
#if HAS_BUG(8)
		item = POBJ_LIST_FIRST(&D_RW(map)->buckets[b]);
		do
			count++;
		while (item = D_RO(item)->link.pe_next, !TOID_EQUALS(item, POBJ_LIST_FIRST(&D_RW(map)->buckets[b]))); //~ 8 recovery
#else
		POBJ_LIST_FOREACH(item, &D_RW(map)->buckets[b], link)
			count++;
#endif
	}
	PUT(D_RW(map)->count, count);
	pmemobj_persist(pool, &D_RW(map)->count, sizeof count);
	PUT(D_RW(map)->is_dirty, 0);
	pmemobj_persist(pool, &D_RW(map)->is_dirty, sizeof(uint64_t));
}

static void collect(uint64_t *versions)
{
	uint64_t items[2 * KEYS];
	unsigned count = allocated(pool, TOID_TYPE_NUM(struct item), items, 2 * KEYS);
	unsigned linked = 0;
	for (unsigned b = 0; b <= BUCKETS; b++) {
		TOID(struct item) at;
		POBJ_LIST_FOREACH(at, &D_RW(map)->buckets[b], link) {
			if (!is_among(at.oid.off, items, count))
				fail("an item that is not allocated");
			const struct item *item = D_RO(at);
			if (item->key >= KEYS || (b < BUCKETS && item->key % BUCKETS != b) || versions[item->key])
				fail("a key in the wrong bucket");
			if (item->current > 1)
				fail("which content is current");
			const struct content *content = &item->contents[item->current];
			for (unsigned i = 0; i < WORDS; i++)
				if (content->words[i] != mix(item->key + i, content->version))
					fail("the words of an item");
			versions[item->key] = content->version;
			linked++;
		}
	}
	if (linked != count)
		fail("an item that is lost");
	if (linked != D_RO(map)->count)
		fail("the counter");
}

static int check(const char *path)
{
	pool = open_pool(path, POBJ_LAYOUT_NAME(atomic_map));
	TOID(struct root) root = pool ? POBJ_ROOT(pool, struct root) : TOID_NULL(struct root);
	if (!pool || TOID_IS_NULL(D_RO(root)->map)) {
		puts("empty");
		return 0;
	}
	map = D_RO(root)->map;
	if (!HAS_BUG(2) && D_RO(map)->is_dirty)
		recount();
	uint64_t versions[KEYS] = {0};
	collect(versions);
	uint64_t ack = D_RO(root)->ack;
	if (!is_after(ack, OPS, OP_COUNT, versions, KEYS) && !is_after(ack + 1, OPS, OP_COUNT, versions, KEYS))
		fail("operations are lost");
	pmemobj_close(pool);
	puts("ok");
	return 0;
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	if (strcmp(argv[2], "run") != 0)
		return check(argv[1]);
	run(argv[1]);
	return 0;
}
