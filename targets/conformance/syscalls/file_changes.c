//@ build: c
//@ cflags: -O1
// Files that are no pools, and names: rules 10 to 14.
#include "pm.h"
#include <dirent.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sendfile.h>
#include <sys/uio.h>
#include <sys/xattr.h>

static void put(const char *path, int flags, const char *text)
{
	int fd = open(path, flags | O_CLOEXEC, 0640);
	CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) && close(fd) == 0);
}

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	put("a", O_WRONLY | O_CREAT | O_EXCL, "first");
	put("a", O_WRONLY | O_CREAT | O_TRUNC, "second");
	put("a", O_WRONLY | O_APPEND, ", more");
	/* The pool is made under another name, and written before it is mapped. */
	int fd = open("made", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	CHECK(fd >= 0 && ftruncate(fd, 8192) == 0 && pwrite(fd, "head", 4, 100) == 4);
	char *pm = pm_map(fd, 8192);
	PUT(int, pm, 1);
	CHECK(rename("made", argv[1]) == 0 && link(argv[1], "alias") == 0);
	PUT(int, pm + 64, 2);
	/* Long writes are cut; vectors, holes and copies are read back. */
	static char text[10000];
	memset(text, 'x', sizeof text);
	int big = open("big", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	CHECK(pwrite(big, text, sizeof text, 5000) == sizeof text);
	struct iovec two[2] = { { "one", 3 }, { "two", 3 } };
	CHECK(pwritev(big, two, 2, 0) == 6 && fallocate(big, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 6000, 3000) == 0);
	CHECK(ftruncate(big, 12000) == 0 && truncate("big", 11000) == 0);
	int in = open("a", O_RDONLY | O_CLOEXEC);
	CHECK(lseek(big, 200, SEEK_SET) == 200 && sendfile(big, in, NULL, 5) == 5 && fsync(big) == 0);
	/* Folders and links. */
	CHECK(mkdir("folder", 0750) == 0 && symlink("folder", "short") == 0);
	put("short/inside", O_WRONLY | O_CREAT, "in a folder");
	CHECK(rename("folder", "moved") == 0 && unlink("short") == 0);
	put("moved/inside", O_WRONLY | O_APPEND, "!");
	CHECK(rename("a", "moved/a") == 0 && rename("big", "moved/a") == 0);
	CHECK(mkdir("gone", 0700) == 0 && rmdir("gone") == 0);
	CHECK(chmod("moved/inside", 0444) == 0 && fchmod(fd, 0644) == 0);
	if (setxattr("alias", "user.x", "value", 5, 0) == 0) {
		CHECK(fsetxattr(fd, "user.y", "", 0, 0) == 0 && removexattr(argv[1], "user.x") == 0);
	}
	CHECK(unlink("alias") == 0);
	PUT(int, pm + 128, 3);
	/* Calls that fail change nothing. */
	CHECK(rename("nowhere", "a") == -1 && open("moved", O_WRONLY | O_CREAT, 0600) == -1 && mkdir("moved", 0700) == -1);
	sync();
	return 0;
}
