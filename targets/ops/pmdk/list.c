//! A sorted list on libpmemobj's transactions.
//! variants: 4
//! grammar: ordered.toml
//! together: 1 2 4 | 3
//! env: PMEM_IS_PMEM_FORCE=1
//! flags: -lpmemobj
//! bug 1: lost key — and all that is inserted behind it, insert
//! bug 2: wrong count, delete
//! bug 3: lost key — neither the old nor the new value, update
//! bug 4: wrong count — the transaction does not know of it, insert
#include "obj_kv.h"

struct node {
	uint64_t key, value;
	PMEMoid next;
};

struct root {
	PMEMoid first;
	uint64_t count;
};

static struct root *root;

static struct node *node_at(PMEMoid oid)
{
	return pmemobj_direct(oid);
}

/* The link to the first node whose key is not smaller. */
static PMEMoid *link_to(uint64_t key)
{
	PMEMoid *link = &root->first;
	while (!OID_IS_NULL(*link) && node_at(*link)->key < key)
		link = &node_at(*link)->next;
	return link;
}

static int leads_to(const PMEMoid *link, uint64_t key)
{
	return !OID_IS_NULL(*link) && node_at(*link)->key == key;
}

static void count_by(uint64_t difference)
{
	if (!HAS_BUG(4))
		pmemobj_tx_add_range_direct(&root->count, 8);
	PUT(root->count, root->count + difference); //~ 4 durability
}

static enum answer insert(uint64_t key, uint64_t value)
{
	PMEMoid *link = link_to(key);
	if (leads_to(link, key))
		return EXISTS;
	TX_BEGIN(pool) {
		PMEMoid oid = pmemobj_tx_alloc(sizeof(struct node), 1);
		struct node *node = node_at(oid);
		node->key = key;
		node->value = value;
		node->next = *link;
		if (!HAS_BUG(1))
			pmemobj_tx_add_range_direct(link, sizeof *link);
		*link = oid; //~ 1 durability
		count_by(1); //~ 4 durability
	} TX_ONABORT {
		fail("cannot insert");
	} TX_END
	return DONE;
}

static enum answer erase(uint64_t key)
{
	PMEMoid *link = link_to(key);
	if (!leads_to(link, key))
		return MISSING;
	PMEMoid gone = *link, rest = node_at(gone)->next;
	if (HAS_BUG(2)) {
		*link = rest; //~ 2 atomicity
		pmemobj_persist(pool, link, sizeof *link);
	}
	TX_BEGIN(pool) {
		if (!HAS_BUG(2)) {
			pmemobj_tx_add_range_direct(link, sizeof *link);
			*link = rest; //~ 3 atomicity
		}
		pmemobj_tx_free(gone);
		count_by(-UINT64_C(1)); //~ 4 durability
	} TX_ONABORT {
		fail("cannot delete");
	} TX_END
	return DONE;
}

static enum answer update(uint64_t key, uint64_t value)
{
	PMEMoid *link = link_to(key);
	if (!leads_to(link, key))
		return MISSING;
	if (HAS_BUG(3)) {
		erase(key);
		return insert(key, value);
	}
	TX_BEGIN(pool) {
		pmemobj_tx_add_range_direct(&node_at(*link)->value, 8);
		node_at(*link)->value = value;
	} TX_END
	return DONE;
}

static const uint64_t *find(uint64_t key)
{
	PMEMoid *link = link_to(key);
	return leads_to(link, key) ? &node_at(*link)->value : NULL;
}

static uint64_t count(void)
{
	return root->count;
}

static void each(void (*show)(uint64_t key, uint64_t value))
{
	for (PMEMoid at = root->first; !OID_IS_NULL(at); at = node_at(at)->next)
		show(node_at(at)->key, node_at(at)->value);
}

static void open_map(const char *path)
{
	root = open_root(path, sizeof *root);
}

int main(int argc, char **argv)
{
	static const struct kv map = {insert, update, erase, find, count, each};
	return obj_main(argc, argv, &map, open_map);
}
