//! What was not synced may be lost: the content of a file that is renamed into place, or that a log was cut.
//! variants: 2
//! run: {bin} {pool} run
//! recover: {bin} {pool} check
//! missed: file operations are durable when they return
#include "files.h"

static void write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		exit(3);
#if !HAS_BUG(1)
	fsync(fd);
#endif
	close(fd);
}

static void cut(const char *path)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || ftruncate(fd, 0) != 0) //~ 2 ordering
		exit(3);
#if !HAS_BUG(2)
	fsync(fd);
#endif
	close(fd);
}

int main(int argc, char **argv)
{
	const char *log = beside(argv[1], ".log"), *made = beside(argv[1], ".log.tmp");
	struct stat st;
	if (is_run(argc, argv)) {
		uint64_t *p = pm_create(argv[1], POOL);
		write_text(made, "entry");
		if (rename(made, log) != 0) //~ 1 ordering
			return 3;
		PUT(p[0], 1);
		persist(p, 8);
		cut(log);
		PUT(p[0], 2);
		persist(p, 8);
		return 0;
	}
	uint64_t *p = pm_open(argv[1], POOL);
	if (p && p[0] == 1)
		insist(stat(log, &st) == 0, "the log is not there");
	if (p && p[0] == 2)
		insist(stat(log, &st) == 0 && st.st_size == 0, "an entry of the log would be applied twice");
	return 0;
}
