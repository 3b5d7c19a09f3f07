//! A hash map on libpmemobj's transactions, with chains and a table that grows.
//! variants: 5
//! grammar: kv.toml
//! env: PMEM_IS_PMEM_FORCE=1
//! flags: -lpmemobj
//! bug 1: wrong count, insert and delete
//! bug 2: lost key, insert
//! bug 3: lost keys — a half-done resize is undone in part, insert that grows
//! bug 4: stale value, update
//! bug 5: crash of a later operation, unexpected key — a node that is free is still in its chain, delete
#include "obj_kv.h"

struct node {
	uint64_t key, value;
	PMEMoid next;
};

struct table {
	uint64_t size;
	PMEMoid chains[];
};

struct root {
	PMEMoid table;
	uint64_t count;
};

static struct root *root;

static struct node *node_at(PMEMoid oid)
{
	return pmemobj_direct(oid);
}

static struct table *table(void)
{
	return pmemobj_direct(root->table);
}

static PMEMoid *chain_of(struct table *table, uint64_t key)
{
	return &table->chains[kv_hash(key) & (table->size - 1)];
}

static PMEMoid *link_to(uint64_t key)
{
	PMEMoid *link = chain_of(table(), key);
	while (!OID_IS_NULL(*link) && node_at(*link)->key != key)
		link = &node_at(*link)->next;
	return link;
}

static PMEMoid new_table(uint64_t size)
{
	PMEMoid oid = pmemobj_tx_zalloc(sizeof(struct table) + size * sizeof(PMEMoid), 1);
	struct table *table = pmemobj_direct(oid);
	table->size = size;
	return oid;
}

static void grow(void)
{
	TX_BEGIN(pool) {
		struct table *old = table();
		PMEMoid oid = new_table(old->size * 2);
		struct table *new = pmemobj_direct(oid);
		for (uint64_t i = 0; i < old->size; i++)
			for (PMEMoid at = old->chains[i]; !OID_IS_NULL(at);) {
				struct node *node = node_at(at);
				PMEMoid next = node->next, *chain = chain_of(new, node->key);
				if (!HAS_BUG(3))
					pmemobj_tx_add_range_direct(&node->next, sizeof node->next);
				node->next = *chain; //~ 3 ordering
				if (HAS_BUG(3))
					pmemobj_persist(pool, &node->next, sizeof node->next);
				*chain = at;
				at = next;
			}
		pmemobj_tx_free(root->table);
		pmemobj_tx_add_range_direct(&root->table, sizeof root->table);
		root->table = oid;
	} TX_ONABORT {
		fail("cannot grow");
	} TX_END
}

static void count_by(uint64_t difference)
{
	if (HAS_BUG(1)) {
		PUT(root->count, root->count + difference); //~ 1 atomicity
		pmemobj_persist(pool, &root->count, 8);
		return;
	}
	pmemobj_tx_add_range_direct(&root->count, 8);
	root->count += difference;
}

static enum answer insert(uint64_t key, uint64_t value)
{
	if (!OID_IS_NULL(*link_to(key)))
		return EXISTS;
	if (root->count >= table()->size * 2)
		grow();
	TX_BEGIN(pool) {
		PMEMoid *chain = chain_of(table(), key);
		PMEMoid oid = pmemobj_tx_alloc(sizeof(struct node), 2);
		struct node *node = node_at(oid);
		node->key = key;
		node->value = value;
		node->next = *chain;
		if (!HAS_BUG(2))
			pmemobj_tx_add_range_direct(chain, sizeof *chain);
		*chain = oid; //~ 2 durability
		count_by(1); //~ 1 atomicity
	} TX_ONABORT {
		fail("cannot insert");
	} TX_END
	return DONE;
}

static enum answer update(uint64_t key, uint64_t value)
{
	PMEMoid link = *link_to(key);
	if (OID_IS_NULL(link))
		return MISSING;
	struct node *node = node_at(link);
	PUT(node->value, value); //~ 4 durability
	if (!HAS_BUG(4))
		pmemobj_persist(pool, &node->value, 8);
	return DONE;
}

static enum answer erase(uint64_t key)
{
	PMEMoid *link = link_to(key);
	if (OID_IS_NULL(*link))
		return MISSING;
	PMEMoid gone = *link, rest = node_at(gone)->next;
	if (HAS_BUG(5))
		pmemobj_free(&gone);
	TX_BEGIN(pool) {
		pmemobj_tx_add_range_direct(link, sizeof *link);
		*link = rest; //~ 5 ordering
		if (!HAS_BUG(5))
			pmemobj_tx_free(gone);
		count_by(-UINT64_C(1)); //~ 1 atomicity
	} TX_ONABORT {
		fail("cannot delete");
	} TX_END
	return DONE;
}

static const uint64_t *find(uint64_t key)
{
	PMEMoid link = *link_to(key);
	return OID_IS_NULL(link) ? NULL : &node_at(link)->value;
}

static uint64_t count(void)
{
	return root->count;
}

static void each(void (*show)(uint64_t key, uint64_t value))
{
	for (uint64_t i = 0; i < table()->size; i++)
		for (PMEMoid at = table()->chains[i]; !OID_IS_NULL(at); at = node_at(at)->next)
			show(node_at(at)->key, node_at(at)->value);
}

static void open_map(const char *path)
{
	root = open_root(path, sizeof *root);
	if (!OID_IS_NULL(root->table))
		return;
	TX_BEGIN(pool) {
		pmemobj_tx_add_range_direct(root, sizeof *root);
		root->table = new_table(2);
	} TX_ONABORT {
		fail("cannot create");
	} TX_END
}

int main(int argc, char **argv)
{
	static const struct kv map = {insert, update, erase, find, count, each};
	return obj_main(argc, argv, &map, open_map);
}
