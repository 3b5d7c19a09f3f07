//! Records with a valid flag, and a recovery that leaves things beside its pool: a marker file, an attribute, a lock. The next recovery must not see them.
//! variants: 3
//! together: 1 3 | 2
//! run: {bin} {pool} run
//! recover: {bin} {pool} check
#include "pm.h"
#include <sys/xattr.h>

#define RECORDS 4

struct record {
	uint64_t data LINE_ALIGNED;
	uint64_t valid LINE_ALIGNED;
};

struct pool {
	uint64_t magic;
	struct record records[RECORDS];
};

static const char *path;

static const char *beside(const char *end)
{
	static char name[4096];
	snprintf(name, sizeof name, "%s%s", path, end);
	return name;
}

static void put_record(struct record *r, uint64_t number)
{
	PUT(r->data, 42 + number); //~ 1 ordering 2 ordering 3 ordering
	flush(&r->data, 8);
#if HAS_BUG(0)
	fence();
#endif
	PUT(r->valid, 1); //~ 1 ordering 2 ordering 3 ordering
	persist(&r->valid, 8);
}

static void run(void *pm)
{
	struct pool *p = pm;
	PUT(p->magic, POOL_MAGIC);
	persist(&p->magic, 8);
	for (uint64_t i = 0; i < RECORDS; i++)
		put_record(&p->records[i], i);
}

/* Was the pool recovered already, as what lies beside it tells? */
static int is_recovered(void)
{
#if HAS_BUG(1)
	return access(beside(".recovered"), F_OK) == 0;
#elif HAS_BUG(2)
	char byte;
	return getxattr(path, "user.recovered", &byte, 1) > 0;
#else
	return 0;
#endif
}

static void leave_traces(void)
{
	int fd = open(beside(".recovered"), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	if (fd >= 0)
		close(fd);
	/* Not every file system has attributes. */
	(void)!setxattr(path, "user.recovered", "1", 1, 0);
}

static void check(void *pm)
{
	struct pool *p = pm;
	if (is_recovered())
		return;
	int lock = open(beside(".lock"), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
	insist(lock >= 0, "locked: another recovery is at work");
	for (uint64_t i = 0; i < RECORDS; i++) {
		int torn = p->records[i].valid && p->records[i].data != 42 + i;
#if HAS_BUG(3)
		/* Leaves its lock. */
		if (torn)
			abort();
#endif
		insist(!torn, "a valid record without its data");
	}
	leave_traces();
#if !HAS_BUG(0)
	unlink(beside(".lock"));
#endif
}

int main(int argc, char **argv)
{
	path = argc > 1 ? argv[1] : "";
	return pm_main(argc, argv, sizeof(struct pool), run, check);
}
