//! A library that intercepts system calls (SplitFS's way): every write to a file below a folder goes through a redo log in PM, so that it happens
//! as a whole; the files themselves are the kernel's.
//! variants: 2
//! bug 1: missing flush — the bytes in the log
//! bug 2: missing flush — the mark that a write is done: it covers half of the next one
#define _GNU_SOURCE
#include "../crash/include/pm.h"
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>

#define LONGEST 16384
#define FILES 1024
#define PATH 232

struct log {
	uint64_t committed LINE_ALIGNED;
	/* A write: where, how much, what. */
	uint64_t offset LINE_ALIGNED;
	uint64_t len;
	char path[PATH];
	char bytes[LONGEST] LINE_ALIGNED;
};

static struct log *p;
static char paths[FILES][PATH];

static int (*next_open)(const char *, int, ...);
static ssize_t (*next_pwrite)(int, const void *, size_t, off_t);

/* What a crash has interrupted is done again. */
static void replay(void)
{
	if (p->committed) {
		int fd = next_open(p->path, O_WRONLY);
		if (fd >= 0) {
			if (next_pwrite(fd, p->bytes, p->len, (off_t)p->offset) != (ssize_t)p->len)
				broken("redolog: a write cannot be repeated");
			close(fd);
		}
		PUT(p->committed, 0);
		persist(&p->committed, 8);
	}
}

static void __attribute__((constructor)) begin(void)
{
	const char *pool = getenv("REDOLOG_POOL");
	next_open = dlsym(RTLD_NEXT, "open");
	next_pwrite = dlsym(RTLD_NEXT, "pwrite");
	if (!pool || !getenv("REDOLOG_ROOT"))
		return;
	int fd = next_open(pool, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || ftruncate(fd, sizeof *p))
		broken("redolog: there is no pool");
	p = pm_map(fd, sizeof *p);
	replay();
}

int open(const char *path, int flags, ...)
{
	va_list rest;
	va_start(rest, flags);
	int mode = va_arg(rest, int);
	va_end(rest);
	if (!next_open)
		next_open = dlsym(RTLD_NEXT, "open");
	int fd = next_open(path, flags, mode);
	const char *root = getenv("REDOLOG_ROOT");
	if (p && fd >= 0 && fd < FILES) {
		int ours = root && !strncmp(path, root, strlen(root)) && strlen(path) < PATH && !(flags & O_APPEND);
		snprintf(paths[fd], PATH, "%s", ours ? path : "");
	}
	return fd;
}

ssize_t pwrite(int fd, const void *from, size_t len, off_t offset)
{
	if (!p || fd < 0 || fd >= FILES || !paths[fd][0] || len > LONGEST)
		return next_pwrite(fd, from, len, offset);
	PUT(p->offset, (uint64_t)offset);
	PUT(p->len, len);
	memcpy(p->path, paths[fd], PATH); //~ 2 durability
	memcpy(p->bytes, from, len); //~ 1 durability
	flush(&p->offset, offsetof(struct log, bytes) - offsetof(struct log, offset));
	if (BUG != 1)
		flush(p->bytes, len);
	fence();
	PUT(p->committed, 1);
	persist(&p->committed, 8);
	ssize_t done = next_pwrite(fd, from, len, offset);
	PUT(p->committed, 0); //~ 2 durability
	if (BUG != 2)
		persist(&p->committed, 8);
	return done;
}
