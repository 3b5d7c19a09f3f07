/* What the C and C++ programs of this suite share: the pool is opened or created, then operations come line by line on
 * standard input and are answered on standard output. See README.md.
 *
 * Stores to the pool are written in the programs themselves, never in here (but for the magic number): a finding's guilty
 * line must be a line of the program. */
#ifndef OPS_H
#define OPS_H
#include "../../crash/include/pm.h"
#include <inttypes.h>

/* What an insertion, an update or a deletion answers. */
enum answer { DONE, EXISTS, MISSING, FULL };

static inline const char *answer_text(enum answer answer)
{
	static const char *const texts[] = {"ok", "exists", "missing", "full"};
	return texts[answer];
}

/* The pool at `path`, which is made if it is missing. What no creation has finished is all zeros but for what the creation
 * stores, so that it can be begun again. */
static inline void *ops_pool(const char *path, size_t size)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	struct stat st;
	if (fd < 0 || fstat(fd, &st) != 0 || ((size_t)st.st_size < size && ftruncate(fd, (off_t)size) != 0)) {
		perror(path);
		exit(2);
	}
	return pm_map(fd, size);
}

/* A bug in the set-up, which every program can have beside its own: a mark behind the pool that is never flushed, and without which
 * the pool is not opened. */
#define SETUP_BUG 30

/* `start` gets the pool and whether it must be created; otherwise it recovers what a crash has left. */
static inline void ops_start(const char *path, size_t size, void (*start)(void *pm, int is_new))
{
	size_t end = (size + LINE - 1) / LINE * LINE;
	uint64_t *magic = ops_pool(path, HAS_BUG(SETUP_BUG) ? end + LINE : size);
	uint64_t *mark = magic + end / sizeof *magic;
	int is_new = *(volatile uint64_t *)magic != POOL_MAGIC;
	if (HAS_BUG(SETUP_BUG) && is_new) {
		PUT(*mark, POOL_MAGIC);
	} else if (HAS_BUG(SETUP_BUG) && *(volatile uint64_t *)mark != POOL_MAGIC) {
		fprintf(stderr, "the pool was cut off\n");
		exit(1);
	}
	start(magic, is_new);
	if (is_new) {
		PUT(*magic, POOL_MAGIC);
		persist(magic, 8);
	}
}

/* `operate` gets an operation's letter and its numbers, and prints the answer. */
static inline void ops_serve(void (*operate)(char kind, uint64_t a, uint64_t b))
{
	char line[256];
	while (fgets(line, sizeof line, stdin)) {
		char kind = 0;
		uint64_t a = 0, b = 0;
		if (sscanf(line, " %c %" SCNu64 " %" SCNu64, &kind, &a, &b) >= 1)
			operate(kind, a, b);
	}
}

static inline int ops_main(int argc, char **argv, size_t size, void (*start)(void *pm, int is_new),
			   void (*operate)(char kind, uint64_t a, uint64_t b))
{
	if (argc != 2) {
		fprintf(stderr, "usage: %s POOL < OPERATIONS\n", argv[0]);
		return 2;
	}
	ops_start(argv[1], size, start);
	ops_serve(operate);
	return 0;
}
#endif
