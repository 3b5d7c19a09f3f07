//! A sorted list of nodes in an array, with a list of free nodes: nodes that were removed are used again before new ones are taken.
//! variants: 5
//! grammar: kv.toml
//! bug 1: wrong value — what the node held before, insert that uses a node again
//! bug 2: lost keys — a link to a node that is not whole, insert between neighbours
//! bug 3: lost keys — the rest of the list, delete of the first key
//! bug 4: duplicated key — a node is free and used, insert that uses a node again
//! bug 5: lost keys — the array is full and the list is moved, insert after 48 nodes
#include "rare.h"

#define NODES 2048

struct node {
	uint64_t key;
	uint64_t value;
	uint64_t next;
	uint64_t pad[5];
};

struct pool {
	uint64_t magic;
	/* Numbers of nodes; 0: none. */
	uint64_t first LINE_ALIGNED;
	uint64_t taken LINE_ALIGNED;
	/* Tells which half of the nodes is in use, with bug 5. */
	struct node nodes[NODES] LINE_ALIGNED;
};

static struct pool *p;

/* A node that is in no list: found by looking, so that no crash can lose one. */
static uint64_t take(int *again)
{
	static unsigned char used[NODES];
	memset(used, 0, sizeof used);
	for (uint64_t n = p->first; n; n = p->nodes[n].next)
		used[n] = 1;
	*again = 0;
	for (uint64_t n = 1; n <= p->taken; n++)
		if (!used[n]) {
			*again = 1;
			return n;
		}
	if (p->taken + 1 == NODES)
		return 0;
	PUT(p->taken, p->taken + 1);
	persist(&p->taken, 8);
	return p->taken;
}

/* The link that leads to `key`, or to the first key behind it. */
static uint64_t *link_to(uint64_t key)
{
	uint64_t *at = &p->first;
	while (*at && p->nodes[*at].key < key)
		at = &p->nodes[*at].next;
	return at;
}

static enum answer insert(uint64_t key, uint64_t value)
{
	uint64_t *at = link_to(key);
	if (*at && p->nodes[*at].key == key)
		return EXISTS;
	int again, between = *at && at != &p->first && p->nodes[*at].key == key + 1;
	uint64_t n = take(&again);
	if (!n)
		return FULL;
	struct node *node = &p->nodes[n];
	if (BUG == 5 && p->taken > 48 && !again) {
		PUT(*at, n); //~ 5 ordering
		persist(at, 8);
		PUT(node->key, key); //~ 5 ordering
		PUT(node->value, value);
		PUT(node->next, 0);
		persist(node, sizeof *node);
		return DONE;
	}
	PUT(node->key, key); //~ 2 ordering
	PUT(node->next, *at); //~ 2 ordering 4 ordering
	if (BUG == 1 && again) {
		persist(node, sizeof *node);
		PUT(*at, n); //~ 1 ordering
		persist(at, 8);
		PUT(node->value, value); //~ 1 ordering
		persist(node, sizeof *node);
		return DONE;
	}
	PUT(node->value, value); //~ 2 ordering
	if (BUG == 2 && between)
		flush(node, sizeof *node);
	else if (!(BUG == 4 && again))
		persist(node, sizeof *node);
	PUT(*at, n); //~ 2 ordering 4 ordering
	persist(at, 8);
	if (BUG == 4 && again)
		persist(node, sizeof *node);
	return DONE;
}

static enum answer delete(uint64_t key)
{
	uint64_t *at = link_to(key);
	if (!*at || p->nodes[*at].key != key)
		return MISSING;
	struct node *node = &p->nodes[*at];
	if (BUG == 3 && at == &p->first && node->next) {
		uint64_t next = node->next;
		PUT(p->first, 0); //~ 3 atomicity
		persist(&p->first, 8);
		PUT(p->first, next); //~ 3 atomicity
		persist(&p->first, 8);
		return DONE;
	}
	PUT(*at, node->next);
	persist(at, 8);
	return DONE;
}

static void operate(char kind, uint64_t key, uint64_t value)
{
	uint64_t *at = link_to(key), n = 0;
	int is_there = *at && p->nodes[*at].key == key;
	switch (kind) {
	case 'i':
		puts(answer_text(insert(key, value)));
		break;
	case 'u':
		if (is_there) {
			PUT(p->nodes[*at].value, value);
			persist(&p->nodes[*at].value, 8);
		}
		puts(is_there ? "ok" : "missing");
		break;
	case 'd':
		puts(answer_text(delete(key)));
		break;
	case 'g':
		if (is_there)
			printf("%" PRIu64 "\n", p->nodes[*at].value);
		else
			puts("missing");
		break;
	case 'n':
		for (uint64_t i = p->first; i; i = p->nodes[i].next)
			n++;
		printf("%" PRIu64 "\n", n);
		break;
	default:
		puts("what?");
	}
}

static void start(void *pm, int is_new)
{
	(void)is_new;
	p = pm;
}

int main(int argc, char **argv)
{
	return ops_main(argc, argv, sizeof(struct pool), start, operate);
}
