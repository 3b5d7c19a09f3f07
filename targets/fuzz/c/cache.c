//! A server with a text protocol: a cache of 12 items that drops the oldest one when it is full. One store to the map of slots in use makes an
//! item there, and another one gone, at once.
//! variants: 3
//! run: {bin} {pool} {socket}
//! grammar: cache.toml
//! bug 1: lost key — dropped, but the new one is not there, set of a thirteenth key
//! bug 2: wrong value — what the slot held before, set that uses a slot again
//! bug 3: half of the keys — the rest is there still, flush of more than eight keys
#include "rare.h"
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>

#define SLOTS 24
#define ITEMS 12

struct pool {
	uint64_t magic;
	/* Which slots are in use. */
	uint64_t used LINE_ALIGNED;
	struct slot {
		uint64_t stamp LINE_ALIGNED;
		uint64_t key;
		uint64_t value;
	} slots[SLOTS];
};

static struct pool *p;

static int find(uint64_t key)
{
	for (int i = 0; i < SLOTS; i++)
		if (p->used >> i & 1 && p->slots[i].key == key)
			return i;
	return -1;
}

static void set(uint64_t key, uint64_t value)
{
	uint64_t stamp = 1, used = p->used;
	int fresh = -1, old = find(key), full = old < 0 && __builtin_popcountll(used) >= ITEMS;
	for (int i = SLOTS; i-- > 0;) {
		if (!(used >> i & 1)) {
			fresh = i;
			continue;
		}
		if (p->slots[i].stamp >= stamp)
			stamp = p->slots[i].stamp + 1;
		if (full && (old < 0 || p->slots[i].stamp < p->slots[old].stamp))
			old = i;
	}
	struct slot *slot = &p->slots[fresh];
	int again = slot->stamp != 0;
	PUT(slot->key, key); //~ 2 ordering
	PUT(slot->value, value); //~ 2 ordering
	PUT(slot->stamp, stamp); //~ 2 ordering
	if (!(BUG == 2 && again))
		persist(slot, sizeof *slot);
	if (BUG == 1 && full) {
		PUT(p->used, used & ~(UINT64_C(1) << old)); //~ 1 atomicity
		persist(&p->used, 8);
	}
	if (old >= 0)
		used &= ~(UINT64_C(1) << old);
	PUT(p->used, used | UINT64_C(1) << fresh); //~ 1 atomicity 2 ordering
	persist(&p->used, 8);
}

static void drop(uint64_t slots)
{
	PUT(p->used, p->used & ~slots); //~ 3 atomicity
	persist(&p->used, 8);
}

static void serve_line(const char *line, char *answer, size_t size)
{
	char verb[8] = "";
	uint64_t key = 0, value = 0;
	sscanf(line, "%7s %" SCNu64 " %" SCNu64, verb, &key, &value);
	int slot = find(key);
	snprintf(answer, size, "OK\n");
	if (!strcmp(verb, "set")) {
		set(key, value);
	} else if (!strcmp(verb, "get")) {
		if (slot < 0)
			snprintf(answer, size, "NOT_FOUND\n");
		else
			snprintf(answer, size, "VALUE %" PRIu64 "\n", p->slots[slot].value);
	} else if (!strcmp(verb, "del")) {
		if (slot < 0)
			snprintf(answer, size, "NOT_FOUND\n");
		else
			drop(UINT64_C(1) << slot);
	} else if (!strcmp(verb, "flush")) {
		if (BUG == 3 && __builtin_popcountll(p->used) > 8)
			drop(0x3f); //~ 3 atomicity
		drop(~UINT64_C(0)); //~ 3 atomicity
	} else if (!strcmp(verb, "count")) {
		snprintf(answer, size, "COUNT %d\n", __builtin_popcountll(p->used));
	} else {
		snprintf(answer, size, "ERROR\n");
	}
}

static void start(void *pm, int is_new)
{
	(void)is_new;
	p = pm;
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	ops_start(argv[1], sizeof(struct pool), start);
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	snprintf(address.sun_path, sizeof address.sun_path, "%s", argv[2]);
	unlink(argv[2]);
	int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof address) != 0 || listen(listener, 4) != 0) {
		perror(argv[2]);
		return 2;
	}
	/* One connection at a time, until a signal ends it. */
	for (;;) {
		int fd = accept(listener, NULL, NULL);
		FILE *in = fd < 0 ? NULL : fdopen(fd, "r");
		char line[256], answer[64];
		if (!in)
			continue;
		while (fgets(line, sizeof line, in)) {
			serve_line(line, answer, sizeof answer);
			if (send(fd, answer, strlen(answer), MSG_NOSIGNAL) < 0)
				break;
		}
		fclose(in);
	}
}
