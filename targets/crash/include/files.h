/* What the programs share that keep files beside their pool. */
#include "pm.h"
#include <errno.h>

#define POOL 8192

static inline int is_run(int argc, char **argv)
{
	if (argc != 3)
		exit(2);
	return strcmp(argv[2], "run") == 0;
}

/* The name of a file beside the pool. */
static inline char *beside(const char *pool, const char *end)
{
	char *name = malloc(strlen(pool) + strlen(end) + 1);
	strcpy(name, pool);
	return strcat(name, end);
}

/* Replaces what the file holds by a number, durably. */
static inline void write_number(const char *path, int number)
{
	char text[16];
	int len = snprintf(text, sizeof text, "%d\n", number);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0 || write(fd, text, (size_t)len) != len || fsync(fd) != 0 || close(fd) != 0)
		exit(3);
}

/* The number in a file; 0 if it is not there, or empty. */
static inline int read_number(const char *path)
{
	char text[16] = "";
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	ssize_t len = read(fd, text, sizeof text - 1);
	close(fd);
	return len <= 0 ? 0 : atoi(text);
}

static inline int exists(const char *path)
{
	return access(path, F_OK) == 0;
}
