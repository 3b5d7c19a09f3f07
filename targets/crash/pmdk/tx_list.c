//! A sorted list on libpmemobj, changed by transactions.
//! variants: 6
//! run: {bin} {pool} run
//! recover: {bin} {pool} check
//! env: PMEM_IS_PMEM_FORCE=1
//! flags: -lpmemobj
//
// Variant 5 is the shape of PMFuzz's bugs 1 to 5 (section 5.4): the creation is rolled back and nobody expects that.
#include "obj.h"

#define KEYS 16
#define WORDS 12

POBJ_LAYOUT_BEGIN(tx_list);
POBJ_LAYOUT_ROOT(tx_list, struct root);
POBJ_LAYOUT_TOID(tx_list, struct list);
POBJ_LAYOUT_TOID(tx_list, struct node);
POBJ_LAYOUT_END(tx_list);

struct node {
	uint64_t key;
	uint64_t version;
	TOID(struct node) next;
	uint64_t words[WORDS];
};

struct list {
	TOID(struct node) first;
	uint64_t limit;
	uint64_t apart[8];
	uint64_t count;
};

struct root {
	TOID(struct list) list;
	uint64_t apart[8];
	uint64_t is_ready;
	uint64_t apart2[8];
	/* Operations that are finished. */
	uint64_t ack;
};

static const struct op OPS[] = {
	{'i', 5}, {'i', 9}, {'u', 9}, {'d', 5}, {'i', 2},
};
#define OP_COUNT (sizeof OPS / sizeof *OPS)

static PMEMobjpool *pool;
static TOID(struct list) list;

static TOID(struct node) * find(uint64_t key)
{
	TOID(struct node) *link = &D_RW(list)->first;
	while (!TOID_IS_NULL(*link) && D_RO(*link)->key < key)
		link = &D_RW(*link)->next;
	return link;
}

static void insert(uint64_t key, uint64_t version)
{
	TX_BEGIN(pool) {
		TOID(struct node) *link = find(key);
#if HAS_BUG(2)
		TOID(struct node) node = TX_XALLOC(struct node, sizeof(struct node), POBJ_XALLOC_NO_FLUSH);
#else
		TOID(struct node) node = TX_NEW(struct node);
#endif
		D_RW(node)->key = key;
		D_RW(node)->version = version;
		D_RW(node)->next = *link;
		for (unsigned i = 0; i < WORDS; i++)
			PUT(D_RW(node)->words[i], mix(key + i, version)); //~ 2 durability
#if HAS_BUG(2)
		pmemobj_flush(pool, D_RW(node), offsetof(struct node, words));
#endif
		TX_ADD_DIRECT(link);
		*link = node;
#if !HAS_BUG(1)
		TX_ADD_FIELD(list, count);
#endif
		PUT(D_RW(list)->count, D_RO(list)->count + 1); //~ 1 atomicity
#if HAS_BUG(1)
		pmemobj_persist(pool, &D_RW(list)->count, sizeof(uint64_t));
#endif
	}
	TX_END
}

static void update(uint64_t key, uint64_t version)
{
	TX_BEGIN(pool) {
		TOID(struct node) node = *find(key);
#if HAS_BUG(3)
		pmemobj_tx_add_range(node.oid, 0, offsetof(struct node, words) + WORDS / 2);
#else
		TX_ADD(node);
#endif
		D_RW(node)->version = version;
		for (unsigned i = 0; i < WORDS; i++)
			PUT(D_RW(node)->words[i], mix(key + i, version)); //~ 3 atomicity
#if HAS_BUG(3)
		pmemobj_persist(pool, D_RW(node), sizeof(struct node));
#endif
	}
	TX_END
}

static void delete(uint64_t key)
{
#if HAS_BUG(4)
	TOID(struct node) *link = find(key);
	TOID(struct node) gone = *link;
	TOID(struct node) next = D_RO(gone)->next;
	POBJ_FREE(&gone); //~ 4 atomicity
	TX_BEGIN(pool) {
		TX_ADD_DIRECT(link);
		*link = next; //~ 4 atomicity
		TX_ADD_FIELD(list, count);
		D_RW(list)->count--; //~ 4 atomicity
	}
	TX_END //~ 4 atomicity
#else
	TX_BEGIN(pool) {
		TOID(struct node) *link = find(key);
		TOID(struct node) gone = *link;
		TX_ADD_DIRECT(link);
		*link = D_RO(gone)->next;
		TX_ADD_FIELD(list, count);
		D_RW(list)->count--;
		TX_FREE(gone);
	}
	TX_END
#endif
}

static void create(void)
{
	TOID(struct root) root = POBJ_ROOT(pool, struct root);
	uint64_t *is_ready = &D_RW(root)->is_ready;
	TX_BEGIN(pool) {
		TX_ADD_FIELD(root, list);
		D_RW(root)->list = TX_ZNEW(struct list);
#if !HAS_BUG(6)
		D_RW(D_RW(root)->list)->limit = KEYS;
#endif
	}
	TX_END
	PUT(*is_ready, 1); //~ 6 ordering
	pmemobj_persist(pool, is_ready, sizeof *is_ready);
#if HAS_BUG(6)
	uint64_t *limit = &D_RW(D_RW(root)->list)->limit;
	PUT(*limit, KEYS); //~ 6 ordering
	pmemobj_persist(pool, limit, sizeof *limit);
#endif
	list = D_RO(root)->list;
}

static void run(const char *path)
{
	pool = create_pool(path, POBJ_LAYOUT_NAME(tx_list));
	create();
	uint64_t *ack = &D_RW(POBJ_ROOT(pool, struct root))->ack;
	for (uint64_t i = 0; i < OP_COUNT; i++) {
		if (OPS[i].kind == 'i')
			insert(OPS[i].key, i + 1);
		else if (OPS[i].kind == 'u')
			update(OPS[i].key, i + 1);
		else
			delete(OPS[i].key);
		PUT(*ack, i + 1);
		pmemobj_persist(pool, ack, sizeof *ack);
	}
	pmemobj_close(pool);
}

static void collect(uint64_t *versions)
{
	uint64_t nodes[2 * KEYS];
	unsigned count = allocated(pool, TOID_TYPE_NUM(struct node), nodes, 2 * KEYS);
	unsigned linked = 0;
	uint64_t last = 0;
	for (TOID(struct node) at = D_RO(list)->first; !TOID_IS_NULL(at); at = D_RO(at)->next) {
		if (!is_among(at.oid.off, nodes, count))
			fail("a node that is not allocated");
		const struct node *node = D_RO(at);
		if (node->key <= last || node->key >= KEYS)
			fail("the order of keys");
		last = node->key;
		for (unsigned i = 0; i < WORDS; i++)
			if (node->words[i] != mix(node->key + i, node->version))
				fail("the words of a node");
		versions[node->key] = node->version;
		linked++;
	}
	if (linked != count)
		fail("a node that is lost");
	if (linked != D_RO(list)->count)
		fail("the counter");
}

static int check(const char *path)
{
	pool = open_pool(path, POBJ_LAYOUT_NAME(tx_list));
	if (!pool) {
		puts("empty");
		return 0;
	}
	TOID(struct root) root = POBJ_ROOT(pool, struct root);
	list = D_RO(root)->list;
#if !HAS_BUG(5)
	if (!D_RO(root)->is_ready) {
		puts("empty");
		pmemobj_close(pool);
		return 0;
	}
#endif
	if (D_RO(list)->limit != KEYS) //~ 5 recovery
		fail("the list's limit");
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
