//! A hash map on libpmemobj's transactions that doubles its buckets when chains grow long, and keeps nodes that were removed for the next
//! insertion.
//! variants: 3
//! grammar: kv.toml
//! env: PMEM_IS_PMEM_FORCE=1
//! flags: -lpmemobj
//! bug 1: lost keys — the transaction does not know of the new table's size, insert that grows the table
//! bug 2: wrong value — the transaction does not know of the node, insert that uses a node again
//! bug 3: lost keys — moved outside of the transaction, second insert that grows the table
#include "../../ops/pmdk/obj_kv.h"

#define FIRST 4

struct node {
	uint64_t key, value;
	PMEMoid next;
};

struct root {
	PMEMoid table;
	uint64_t size;
	uint64_t count;
	PMEMoid spare;
};

static struct root *root;

static struct node *node_at(PMEMoid oid)
{
	return pmemobj_direct(oid);
}

static PMEMoid *bucket(PMEMoid table, uint64_t size, uint64_t key)
{
	PMEMoid *buckets = pmemobj_direct(table);
	return &buckets[key * UINT64_C(0x9e3779b97f4a7c15) >> 32 & (size - 1)];
}

static PMEMoid *link_to(uint64_t key)
{
	PMEMoid *link = bucket(root->table, root->size, key);
	while (!OID_IS_NULL(*link) && node_at(*link)->key != key)
		link = &node_at(*link)->next;
	return link;
}

/* In a transaction. */
static void grow(void)
{
	uint64_t size = root->size * 2;
	PMEMoid table = pmemobj_tx_zalloc(size * sizeof(PMEMoid), 2);
	PMEMoid *old = pmemobj_direct(root->table);
	for (uint64_t i = 0; i < root->size; i++)
		while (!OID_IS_NULL(old[i])) {
			PMEMoid moved = old[i];
			PMEMoid *to = bucket(table, size, node_at(moved)->key);
			if (BUG != 3 || size < FIRST * 4) {
				pmemobj_tx_add_range_direct(&old[i], sizeof *old);
				pmemobj_tx_add_range_direct(&node_at(moved)->next, sizeof *to);
			}
			old[i] = node_at(moved)->next; //~ 3 durability
			node_at(moved)->next = *to; //~ 3 durability
			*to = moved;
		}
	pmemobj_tx_free(root->table);
	pmemobj_tx_add_range_direct(&root->table, sizeof root->table);
	root->table = table;
	if (BUG != 1)
		pmemobj_tx_add_range_direct(&root->size, 8);
	PUT(root->size, size); //~ 1 durability
}

static enum answer insert(uint64_t key, uint64_t value)
{
	if (!OID_IS_NULL(*link_to(key)))
		return EXISTS;
	TX_BEGIN(pool) {
		if (root->count + 1 > root->size * 2)
			grow();
		PMEMoid *link = link_to(key), oid = root->spare;
		if (OID_IS_NULL(oid)) {
			oid = pmemobj_tx_alloc(sizeof(struct node), 1);
		} else {
			if (BUG != 2)
				pmemobj_tx_add_range_direct(node_at(oid), sizeof(struct node));
			pmemobj_tx_add_range_direct(&root->spare, sizeof oid);
			root->spare = node_at(oid)->next;
		}
		struct node *node = node_at(oid);
		PUT(node->key, key); //~ 2 durability
		PUT(node->value, value); //~ 2 durability
		node->next = *link; //~ 2 durability
		pmemobj_tx_add_range_direct(link, sizeof *link);
		*link = oid;
		pmemobj_tx_add_range_direct(&root->count, 8);
		root->count++;
	} TX_ONABORT {
		fail("cannot insert");
	} TX_END
	return DONE;
}

static enum answer erase(uint64_t key)
{
	PMEMoid *link = link_to(key);
	if (OID_IS_NULL(*link))
		return MISSING;
	TX_BEGIN(pool) {
		PMEMoid gone = *link;
		pmemobj_tx_add_range_direct(link, sizeof *link);
		*link = node_at(gone)->next;
		pmemobj_tx_add_range_direct(&node_at(gone)->next, sizeof gone);
		node_at(gone)->next = root->spare;
		pmemobj_tx_add_range_direct(&root->spare, sizeof gone);
		root->spare = gone;
		pmemobj_tx_add_range_direct(&root->count, 8);
		root->count--;
	} TX_ONABORT {
		fail("cannot delete");
	} TX_END
	return DONE;
}

static enum answer update(uint64_t key, uint64_t value)
{
	PMEMoid *link = link_to(key);
	if (OID_IS_NULL(*link))
		return MISSING;
	TX_BEGIN(pool) {
		pmemobj_tx_add_range_direct(&node_at(*link)->value, 8);
		node_at(*link)->value = value;
	} TX_END
	return DONE;
}

static const uint64_t *find(uint64_t key)
{
	PMEMoid *link = link_to(key);
	return OID_IS_NULL(*link) ? NULL : &node_at(*link)->value;
}

static uint64_t count(void)
{
	return root->count;
}

static void each(void (*show)(uint64_t key, uint64_t value))
{
	(void)show;
}

static void open_map(const char *path)
{
	root = open_root(path, sizeof *root);
	if (root->size)
		return;
	TX_BEGIN(pool) {
		pmemobj_tx_add_range_direct(root, sizeof *root);
		root->table = pmemobj_tx_zalloc(FIRST * sizeof(PMEMoid), 2);
		root->size = FIRST;
	} TX_ONABORT {
		fail("cannot create");
	} TX_END
}

int main(int argc, char **argv)
{
	static const struct kv map = {insert, update, erase, find, count, each};
	return obj_main(argc, argv, &map, open_map);
}
