//! A log-structured store: segments are mapped files, a manifest names the live ones, compaction writes a new segment, swaps the manifest by
//! a rename and deletes the old segments. The manifest is complete before it has its name, segments before they are in it.
//! variants: 1
//! run: {bin} {pool} run
//! recover: {bin} {pool} check
#include "files.h"

#define KEYS 4

/* A record is complete with its check word, which is stored last. */
struct record {
	uint64_t key, value, check;
} LINE_ALIGNED;

static char *segment_path(const char *pool, int number)
{
	char end[32];
	snprintf(end, sizeof end, ".seg%d", number);
	return beside(pool, end);
}

static void append(struct record *at, uint64_t key, uint64_t value)
{
	PUT(at->key, key); //~ 1 ordering
	PUT(at->value, value); //~ 1 ordering
	PUT(at->check, key ^ value ^ POOL_MAGIC); //~ 1 ordering
	persist(at, sizeof *at);
}

/* Replaces the manifest: "first last\n", the segments that are live. */
static void publish(const char *pool, int first, int last)
{
	char text[32], *made = beside(pool, ".manifest.tmp");
	int len = snprintf(text, sizeof text, "%d %d\n", first, last);
	int fd = open(made, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0 || write(fd, text, (size_t)len) != len || fsync(fd) != 0 || close(fd) != 0)
		exit(3);
	if (rename(made, beside(pool, ".manifest")) != 0)
		exit(3);
}

static int manifest(const char *pool, int *first, int *last)
{
	char text[32] = "";
	int fd = open(beside(pool, ".manifest"), O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	ssize_t len = read(fd, text, sizeof text - 1);
	close(fd);
	insist(len > 0 && sscanf(text, "%d %d", first, last) == 2, "the manifest is not whole");
	return 1;
}

static void run(const char *pool)
{
	for (int number = 0; number < 3; number++) {
		struct record *segment = pm_create(segment_path(pool, number), POOL);
		for (uint64_t key = 0; key < KEYS; key++)
			append(&segment[key], key, 10 * (uint64_t)number + key);
		publish(pool, 0, number);
	}
	/* Compaction: the newest values in one segment. */
	struct record *newest = pm_create(segment_path(pool, 3), POOL);
#if HAS_BUG(1)
	publish(pool, 3, 3);
#endif
	for (uint64_t key = 0; key < KEYS; key++)
		append(&newest[key], key, 20 + key);
#if !HAS_BUG(1)
	publish(pool, 3, 3);
#endif
	for (int number = 0; number < 3; number++)
		if (unlink(segment_path(pool, number)) != 0)
			exit(3);
}

static void check(const char *pool)
{
	int first, last;
	if (!manifest(pool, &first, &last))
		return;
	for (int number = first; number <= last; number++) {
		struct record *segment = pm_open(segment_path(pool, number), POOL);
		insist(segment != NULL, "a live segment is not there");
		for (uint64_t key = 0; key < KEYS; key++) {
			uint64_t value = (number == 3 ? 20 : 10 * (uint64_t)number) + key;
			insist(segment[key].check == (key ^ value ^ POOL_MAGIC), "a live segment is not complete");
			insist(segment[key].key == key && segment[key].value == value, "a record is torn");
		}
	}
}

int main(int argc, char **argv)
{
	if (is_run(argc, argv))
		run(argv[1]);
	else
		check(argv[1]);
	return 0;
}
