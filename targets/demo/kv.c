/*
 * A small key-value store on persistent memory, with a bug that tests do not find: `remove` marks a slot
 * free and forgets to flush the mark. After a power failure a removed key may be back.
 *
 *   kv POOL put KEY VALUE | get KEY | remove KEY | demo
 */
#include <fcntl.h>
#include <immintrin.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SLOTS = 64, EMPTY = 0, FULL = 1, REMOVED = 2 };

struct slot {
	uint64_t state;
	char key[24];
	char value[32];
};

struct store {
	uint64_t magic;
	uint64_t unused[7];
	struct slot slots[SLOTS];
};

/* What `clwb` and `sfence` do on every x86-64: make [start, start + len) durable. */
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
		persist(slot, sizeof *slot);
		slot->state = FULL;
		persist(&slot->state, sizeof slot->state);
		return 0;
	}
	return -1;
}

static int remove_key(struct store *store, const char *key)
{
	struct slot *slot = find(store, key);
	if (slot == NULL)
		return -1;
	slot->state = REMOVED; /* the bug: never flushed */
	return 0;
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
		fprintf(stderr, "usage: %s POOL put KEY VALUE | get KEY | remove KEY | demo\n", argv[0]);
		return 2;
	}
	struct store *store = open_store(argv[1]);
	if (strcmp(argv[2], "demo") == 0) {
		put(store, "apple", "red");
		put(store, "banana", "yellow");
		remove_key(store, "apple");
		return find(store, "apple") == NULL && find(store, "banana") != NULL ? 0 : 1;
	}
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
