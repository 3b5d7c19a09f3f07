/* Recoveries that change files beside their pool: `apart ACT POOL`. Exit code 3: something of another run is there. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

static int touch(const char *path)
{
	int fd = open(path, O_CREAT | O_EXCL | O_RDWR, 0600);
	if (fd < 0)
		return 3;
	close(fd);
	return 0;
}

static char first(const char *path)
{
	char byte = 0;
	int fd = open(path, O_RDONLY);
	if (fd < 0 || read(fd, &byte, 1) != 1)
		return 0;
	close(fd);
	return byte;
}

static int put(const char *path, char byte)
{
	int fd = open(path, O_RDWR);
	if (fd < 0 || write(fd, &byte, 1) != 1)
		return 4;
	close(fd);
	return 0;
}

/* A lock on the whole file: of this process, or of the descriptor. */
static int lock(int fd, int how)
{
	struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	return fcntl(fd, how, &all);
}

int main(int argc, char **argv)
{
	const char *act = argv[1];
	struct stat st;
	char byte = 0;
	/* Open before the pool is used: every run shares them with the server. */
	int log = open("log", O_CREAT | O_RDWR | O_APPEND, 0600);
	int before = open("neighbour", O_RDONLY);
	int locked = open("sub/file", O_CREAT | O_RDWR, 0600);
	if (!strcmp(act, "record-lock") && lock(locked, F_SETLK))
		return 3;
	if (!strcmp(act, "file-lock") && flock(locked, LOCK_EX | LOCK_NB))
		return 3;
	if (!strcmp(act, "descriptor-lock") && lock(locked, F_OFD_SETLK))
		return 3;
	int pool = argc > 2 ? open(argv[2], O_RDWR) : -1;
	if (pool < 0 || log < 0 || before < 0)
		return 5;
	if (!strcmp(act, "create"))
		return touch("left") || mkdir("folder", 0700) || touch("folder/left") || touch("sub/left");
	if (!strcmp(act, "delete"))
		return unlink("neighbour") ? 3 : 0;
	if (!strcmp(act, "rename"))
		return rename("neighbour", "renamed") ? 3 : 0;
	if (!strcmp(act, "change"))
		return first("neighbour") != 'n' ? 3 : put("neighbour", 'x');
	if (!strcmp(act, "mode")) {
		if (stat("neighbour", &st) || (st.st_mode & 0777) == 0400)
			return 3;
		return chmod("neighbour", 0400) ? 4 : 0;
	}
	if (!strcmp(act, "pool-mode")) {
		if (fstat(pool, &st) || (st.st_mode & 0777) == 0400)
			return 3;
		return fchmod(pool, 0400) ? 4 : 0;
	}
	if (!strcmp(act, "pool-attribute")) {
		if (fgetxattr(pool, "user.left", &byte, 1) > 0)
			return 3;
		return fsetxattr(pool, "user.left", "1", 1, 0) && errno != ENOTSUP ? 4 : 0;
	}
	if (!strcmp(act, "log")) {
		if (fstat(log, &st) || st.st_size != 0)
			return 3;
		return write(log, "x", 1) == 1 ? 0 : 4;
	}
	if (!strcmp(act, "position"))
		return read(before, &byte, 1) == 1 && byte == 'n' ? 0 : 3;
	if (!strcmp(act, "lock")) {
		if (touch("lock"))
			return 3;
		abort();
	}
	if (!strcmp(act, "record-lock"))
		return lock(locked, F_SETLK) ? 3 : 0;
	/* The descriptor has it, so another one cannot; once it is given back, it can. */
	if (!strcmp(act, "file-lock")) {
		int other = open("sub/file", O_RDWR);
		if (!flock(other, LOCK_EX | LOCK_NB) || flock(locked, LOCK_UN) || flock(other, LOCK_EX | LOCK_NB))
			return 3;
		return flock(other, LOCK_UN) || flock(locked, LOCK_EX | LOCK_NB) ? 3 : 0;
	}
	if (!strcmp(act, "descriptor-lock")) {
		int other = open("sub/file", O_RDWR);
		return lock(other, F_OFD_SETLK) ? 0 : 3;
	}
	/* Taken after the pool is opened, on a descriptor that every run shares with the server. */
	if (!strcmp(act, "late-lock")) {
		int other = open("sub/file", O_RDWR);
		if (flock(other, LOCK_EX | LOCK_NB) || lock(other, F_OFD_SETLK))
			return 3;
		close(other);
		return flock(locked, LOCK_EX | LOCK_NB) || lock(locked, F_OFD_SETLK) ? 4 : 0;
	}
	/* Room for a file: whether it is reserved or not, the length is new, what was there stays, and errors are those of the call. */
	if (!strcmp(act, "reserve")) {
		const off_t length = 8 << 20;
		struct stat now;
		char byte = 0;
		int file = open("sub/reserved", O_RDWR | O_CREAT, 0600), other = open("sub/reserved", O_RDONLY);
		if (pwrite(file, "r", 1, 7) != 1 || fallocate(file, 0, 4096, length - 4096) || fstat(file, &now))
			return 3;
		if (now.st_size != length || pread(file, &byte, 1, 7) != 1 || byte != 'r')
			return 4;
		if (pread(file, &byte, 1, length - 1) != 1 || byte)
			return 5;
		return fallocate(other, 0, 0, 2 * length) == -1 && errno == EBADF ? 0 : 7;
	}
	if (!strcmp(act, "outside"))
		return put(getenv("OUTSIDE"), 'x');
	return 6;
}
