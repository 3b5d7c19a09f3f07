/*
 * A small key-value store on persistent memory, with a bug that its tests do not find: `put` makes the whole slot durable
 * at once, and a power failure in the midst of that can leave a slot that is full without its value. With -DREPAIRED the value
 * comes first.
 *
 *   kv POOL put KEY VALUE | get KEY | remove KEY | demo | verify
 *
 * `verify` is what a program does after a crash: it opens the store and looks if everything is there.
 */
#include <fcntl.h>
#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SLOTS = 64, EMPTY = 0, FULL = 1, REMOVED = 2 };

/* Two cache lines. */
struct slot {
	uint64_t state;
	uint64_t length;
	char key[48];
	char value[64];
};

struct store {
	uint64_t magic;
	uint64_t unused[7];
	struct slot slots[SLOTS];
};

/* What `clwb` and `sfence` do, on every x86-64: make [start, start + len) durable. */
static void persist(const void *start, size_t len)
{
	uintptr_t line = (uintptr_t)start & ~(uintptr_t)63;
	for (; line < (uintptr_t)start + len; line += 64)
		_mm_clflush((const void *)line);
	_mm_sfence();
}

static struct slot *find(struct store *store, const char *key)
{
	for (int i = 0; i < SLOTS; i++)
		if (store->slots[i].state == FULL && strcmp(store->slots[i].key, key) == 0)
			return &store->slots[i];
	return NULL;
}

static int put(struct store *store, const char *key, const char *value)
{
	for (int i = 0; i < SLOTS; i++) {
		struct slot *slot = &store->slots[i];
		if (slot->state == FULL)
			continue;
		strncpy(slot->key, key, sizeof slot->key - 1);
		strncpy(slot->value, value, sizeof slot->value - 1);
		slot->length = strlen(slot->value);
#ifdef REPAIRED
		persist(slot->value, sizeof slot->value);
		slot->state = FULL;
		persist(slot, offsetof(struct slot, value));
#else
		slot->state = FULL; /* the bug: the value may not be durable yet */
		persist(slot, sizeof *slot);
#endif
		return 0;
	}
	return -1;
}

static int remove_key(struct store *store, const char *key)
{
	struct slot *slot = find(store, key);
	if (slot == NULL)
		return -1;
	slot->state = REMOVED;
	persist(&slot->state, sizeof slot->state);
	return 0;
}

static int demo(struct store *store)
{
	put(store, "apple", "red");
	put(store, "banana", "yellow");
	remove_key(store, "apple");
	put(store, "cherry", "dark red");
	struct slot *banana = find(store, "banana"), *cherry = find(store, "cherry");
	return find(store, "apple") == NULL && banana != NULL && strcmp(banana->value, "yellow") == 0 && cherry != NULL &&
	       strcmp(cherry->value, "dark red") == 0;
}

static int verify(const struct store *store)
{
	for (int i = 0; i < SLOTS; i++) {
		const struct slot *slot = &store->slots[i];
		if (slot->state == FULL && strnlen(slot->value, sizeof slot->value) != slot->length) {
			fprintf(stderr, "the value of \"%s\" is damaged\n", slot->key);
			return 0;
		}
	}
	return 1;
}

static struct store *open_store(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT, 0644);
	if (fd < 0 || ftruncate(fd, sizeof(struct store)) != 0) {
		perror(path);
		exit(1);
	}
	void *map = mmap(NULL, sizeof(struct store), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED) {
		perror("mmap");
		exit(1);
	}
	struct store *store = map;
	if (store->magic != 0x766b) {
		store->magic = 0x766b;
		persist(&store->magic, sizeof store->magic);
	}
	return store;
}

int main(int argc, char **argv)
{
	if (argc < 3) {
		fprintf(stderr, "usage: %s POOL put KEY VALUE | get KEY | remove KEY | demo | verify\n", argv[0]);
		return 2;
	}
	struct store *store = open_store(argv[1]);
	if (strcmp(argv[2], "demo") == 0)
		return demo(store) ? 0 : 1;
	if (strcmp(argv[2], "verify") == 0)
		return verify(store) ? 0 : 1;
	if (strcmp(argv[2], "put") == 0 && argc == 5)
		return put(store, argv[3], argv[4]) == 0 ? 0 : 1;
	if (strcmp(argv[2], "remove") == 0 && argc == 4)
		return remove_key(store, argv[3]) == 0 ? 0 : 1;
	if (strcmp(argv[2], "get") == 0 && argc == 4) {
		struct slot *slot = find(store, argv[3]);
		printf("%s\n", slot ? slot->value : "(none)");
		return slot ? 0 : 1;
	}
	return 2;
}
