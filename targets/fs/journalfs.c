//! A small PM file system for FUSE: a redo journal for metadata, data in place, directories, hard and symbolic links, sparse files.
//! variants: 20
//! bug 1: missing flush — a new inode; found by bugs.ops
//! bug 2: missing fence — the journal's words against its commit mark; found by bugs.ops
//! bug 3: non-atomic rename — neither name; found by bugs.ops
//! bug 4: non-atomic rename — both names; found by bugs.ops
//! bug 5: link count in place; found by bugs.ops
//! bug 6: journal replay of what was not committed; found by bugs.ops
//! bug 7: truncate list not used: stale bytes behind the end; found by bugs.ops
//! bug 8: unaligned tail not flushed; found by bugs.ops
//! bug 9: data write not synchronous; found by bugs.ops
//! bug 10: recovery crashes on a file without blocks; found by bugs.ops
//! bug 11: while a second descriptor is open, blocks are allocated outside the journal: after truncate and fallocate the file has no block; found by bugs.ops
//! bug 12: missing flush — a name in a directory; found by bugs.ops
//! bug 13: size before data; found by bugs.ops
//! bug 14: a new block is not durably zero: old bytes of another file; found by bugs.ops
//! bug 15: unlink frees the inode before the name is gone; found by bugs.ops
//! bug 16: link count of the parent outside the transaction; found by bugs.ops
//! bug 17: commit mark not cleared durably: an old mark covers half of the next transaction; found by bugs.ops
//! bug 18: chmod not flushed; found by bugs.ops
//! bug 19: rename loses the file that it replaces; found by bugs.ops
//! bug 20: of a file system that needs fsync — it flushes half of each block; found by fsync
#define FUSE_USE_VERSION 31
#include "store.h"
#include <errno.h>
#include <linux/falloc.h>
#include <fuse3/fuse.h>
#include <signal.h>
#include <time.h>

/* A daemon that misbehaves without any crash, for the tests of what is said then. */
enum fault { NONE, HANGS_AT_MOUNT, HANGS_AT_UNMOUNT, DIES, KILLED, KEEPS_SYMLINKS, READS_NOISE };
#ifndef FAULT
#define FAULT NONE
#endif

static struct inode *inode_at(uint64_t number)
{
	return &p->inodes[number];
}

/* Entry number n of a directory; NULL behind the last. */
static struct dirent *entry_at(const struct inode *dir, uint64_t n)
{
	uint64_t per = BLOCK / sizeof(struct dirent);
	if (n / per >= INDEXED)
		return NULL;
	uint32_t block = block_at(dir, n / per);
	return block ? (struct dirent *)p->blocks[block] + n % per : NULL;
}

static struct dirent *find(const struct inode *dir, const char *name, size_t len)
{
	struct dirent *entry;
	for (uint64_t n = 0; (entry = entry_at(dir, n)); n++)
		if (entry->inode && strlen(entry->name) == len && !memcmp(entry->name, name, len))
			return entry;
	return NULL;
}

/* The inode of a path; 0 with errno. */
static uint64_t walk(const char *path, size_t len)
{
	uint64_t number = ROOT;
	const char *end = path + len;
	while (path < end) {
		while (path < end && *path == '/')
			path++;
		const char *stop = memchr(path, '/', (size_t)(end - path));
		if (!stop)
			stop = end;
		if (stop == path)
			break;
		if (!S_ISDIR(inode_at(number)->mode)) {
			errno = ENOTDIR;
			return 0;
		}
		struct dirent *entry = find(inode_at(number), path, (size_t)(stop - path));
		if (!entry) {
			errno = ENOENT;
			return 0;
		}
		number = entry->inode;
		path = stop;
	}
	return number;
}

/* A file that is open and has no name any more has no path. */
static uint64_t lookup(const char *path)
{
	if (!path) {
		errno = ENOENT;
		return 0;
	}
	return walk(path, strlen(path));
}

/* The directory of a path, and its last name. */
static uint64_t parent(const char *path, const char **name)
{
	const char *slash = strrchr(path, '/');
	*name = slash + 1;
	return walk(path, (size_t)(slash - path));
}

/* Descriptors that are open, for bug 11. */
static unsigned open_files;

/* Blocks of a file from one to another are allocated in the transaction; 0 or an error. */
static int allocate(struct inode *inode, uint64_t from, uint64_t to)
{
	if (to > INDEXED)
		return -EFBIG;
	uint64_t index = soon(&inode->index);
	if (!index) {
		if (!(index = new_block()))
			return -ENOSPC;
		change(&inode->index, index);
	}
	for (uint64_t n = from; n < to; n++) {
		uint32_t *at = &index_of(index)[n];
		if (soon_half(at))
			continue;
		uint64_t block = new_block();
		if (!block)
			return -ENOSPC;
		if (BUG == 11 && open_files > 1)
			PUT(*at, (uint32_t)block); //~ 11 durability
		else
			change_half(at, (uint32_t)block);
	}
	return 0;
}

/* What an abandoned transaction took is free again: mount's way to find out is right at any time. */
static int failed(int error)
{
	abandon();
	recover();
	return error;
}

/* A name for an inode, in the transaction. Its bytes are durable before. */
static int add_entry(struct inode *dir, const char *name, uint64_t number)
{
	if (strlen(name) >= NAME)
		return -ENAMETOOLONG;
	uint64_t per = BLOCK / sizeof(struct dirent), n = 0;
	struct dirent *entry;
	while ((entry = entry_at(dir, n)) && (entry->inode || soon(&entry->inode)))
		n++;
	if (!entry) {
		int error = allocate(dir, n / per, n / per + 1);
		if (error)
			return error;
		uint64_t index = soon(&dir->index);
		entry = (struct dirent *)p->blocks[soon_half(&index_of(index)[n / per])] + n % per;
	}
	memset(entry->name, 0, NAME);
	memcpy(entry->name, name, strlen(name)); //~ 12 durability
	if (BUG != 12)
		persist(entry, sizeof *entry);
	change(&entry->inode, number);
	return 0;
}

static int make_node(const char *path, mode_t mode, uint64_t *made)
{
	const char *name;
	uint64_t dir = parent(path, &name);
	if (!dir)
		return -errno;
	if (!S_ISDIR(inode_at(dir)->mode))
		return -ENOTDIR;
	if (find(inode_at(dir), name, strlen(name)))
		return -EEXIST;
	uint64_t number = new_inode();
	if (!number)
		return -ENOSPC;
	struct inode *inode = inode_at(number);
	struct fuse_context *who = fuse_get_context();
	PUT(inode->user, who->uid);
	PUT(inode->group, who->gid);
	PUT(inode->size, 0);
	PUT(inode->index, 0);
	persist(inode, sizeof *inode);
	int error = add_entry(inode_at(dir), name, number);
	if (error)
		return failed(error);
	if (BUG == 1) {
		PUT(inode->mode, mode); //~ 1 durability
		PUT(inode->links, S_ISDIR(mode) ? 2 : 1); //~ 1 durability
	} else {
		change_half(&inode->mode, mode);
		change_half(&inode->links, S_ISDIR(mode) ? 2 : 1);
	}
	if (S_ISDIR(mode)) {
		if (BUG == 16) {
			PUT(inode_at(dir)->links, inode_at(dir)->links + 1); //~ 16 atomicity
			persist(&inode_at(dir)->links, 4);
		} else {
			change_half(&inode_at(dir)->links, inode_at(dir)->links + 1);
		}
	}
	commit();
	*made = number;
	return 0;
}

/* One name less for an inode, in the transaction; the caller finishes what is left after the commit. */
static void drop_link(struct inode *inode)
{
	uint32_t links = soon_half(&inode->links) - (S_ISDIR(inode->mode) ? 2 : 1);
	change_half(&inode->links, links);
	if (!links) {
		change(&inode->size, 0);
		change(&p->super.truncating, (uint64_t)(inode - p->inodes));
	}
}

static void finish(void)
{
	if (p->super.truncating)
		finish_truncate(inode_at(p->super.truncating));
}

static int fs_getattr(const char *path, struct stat *st, struct fuse_file_info *fi)
{
	(void)fi;
	uint64_t number = lookup(path);
	if (!number)
		return -errno;
	const struct inode *inode = inode_at(number);
	if (!inode->mode)
		return -EIO;
	memset(st, 0, sizeof *st);
	st->st_ino = number;
	st->st_mode = inode->mode;
	st->st_nlink = inode->links;
	st->st_uid = inode->user;
	st->st_gid = inode->group;
	st->st_size = (off_t)inode->size;
	return 0;
}

static int fs_readdir(const char *path, void *buffer, fuse_fill_dir_t fill, off_t offset, struct fuse_file_info *fi,
		      enum fuse_readdir_flags flags)
{
	(void)offset, (void)fi, (void)flags;
	uint64_t number = lookup(path);
	if (!number)
		return -errno;
	struct dirent *entry;
	fill(buffer, ".", NULL, 0, 0);
	fill(buffer, "..", NULL, 0, 0);
	for (uint64_t n = 0; (entry = entry_at(inode_at(number), n)); n++)
		if (entry->inode && fill(buffer, entry->name, NULL, 0, 0))
			return -ENOMEM;
	return 0;
}

static int fs_create(const char *path, mode_t mode, struct fuse_file_info *fi)
{
	(void)fi;
	if (FAULT == DIES)
		abort();
	if (FAULT == KILLED)
		raise(SIGKILL);
	uint64_t number;
	open_files++;
	return make_node(path, S_IFREG | (mode & 07777), &number);
}

static int fs_mkdir(const char *path, mode_t mode)
{
	uint64_t number;
	return make_node(path, S_IFDIR | (mode & 07777), &number);
}

static int fs_unlink(const char *path)
{
	const char *name;
	uint64_t dir = parent(path, &name);
	struct dirent *entry = dir ? find(inode_at(dir), name, strlen(name)) : NULL;
	if (!entry)
		return -ENOENT;
	struct inode *inode = inode_at(entry->inode);
	if (FAULT == KEEPS_SYMLINKS && S_ISLNK(inode->mode))
		return -EIO;
	if (BUG == 15 && inode->links == 1) {
		PUT(inode->mode, 0); //~ 15 ordering
		persist(&inode->mode, 4);
	}
	change(&entry->inode, 0);
	drop_link(inode);
	commit();
	finish();
	return 0;
}

static int is_empty(const struct inode *dir)
{
	struct dirent *entry;
	for (uint64_t n = 0; (entry = entry_at(dir, n)); n++)
		if (entry->inode)
			return 0;
	return 1;
}

static int fs_rmdir(const char *path)
{
	const char *name;
	uint64_t dir = parent(path, &name);
	struct dirent *entry = dir ? find(inode_at(dir), name, strlen(name)) : NULL;
	if (!entry)
		return -ENOENT;
	struct inode *inode = inode_at(entry->inode);
	if (!S_ISDIR(inode->mode))
		return -ENOTDIR;
	if (!is_empty(inode))
		return -ENOTEMPTY;
	change(&entry->inode, 0);
	change_half(&inode_at(dir)->links, inode_at(dir)->links - 1);
	drop_link(inode);
	commit();
	finish();
	return 0;
}

static int fs_link(const char *from, const char *to)
{
	const char *name;
	uint64_t number = lookup(from), dir = parent(to, &name);
	if (!number || !dir)
		return -ENOENT;
	if (find(inode_at(dir), name, strlen(name)))
		return -EEXIST;
	struct inode *inode = inode_at(number);
	if (BUG == 5) {
		PUT(inode->links, inode->links + 1); //~ 5 atomicity
		persist(&inode->links, 4);
	}
	int error = add_entry(inode_at(dir), name, number);
	if (error)
		return failed(error);
	if (BUG != 5)
		change_half(&inode->links, inode->links + 1);
	commit();
	return 0;
}

/* A directory must not become a part of itself. */
static int is_inside(const char *path, const char *dir)
{
	size_t len = strlen(dir);
	return !strncmp(path, dir, len) && path[len] == '/';
}

static int fs_rename(const char *from, const char *to, unsigned flags)
{
	const char *name, *new_name;
	if (flags)
		return -EINVAL;
	uint64_t dir = parent(from, &name), new_dir = parent(to, &new_name);
	if (!dir || !new_dir)
		return -ENOENT;
	struct dirent *old = find(inode_at(dir), name, strlen(name));
	if (!old)
		return -ENOENT;
	if (is_inside(to, from))
		return -EINVAL;
	uint64_t number = old->inode;
	struct inode *inode = inode_at(number);
	struct dirent *replaced = find(inode_at(new_dir), new_name, strlen(new_name));
	struct inode *gone = replaced ? inode_at(replaced->inode) : NULL;
	if (gone == inode)
		return 0;
	if (gone && S_ISDIR(gone->mode) && !S_ISDIR(inode->mode))
		return -EISDIR;
	if (gone && !S_ISDIR(gone->mode) && S_ISDIR(inode->mode))
		return -ENOTDIR;
	if (gone && S_ISDIR(gone->mode) && !is_empty(gone))
		return -ENOTEMPTY;
	if (gone) {
		if (BUG == 19) {
			PUT(replaced->inode, 0); //~ 19 atomicity
			persist(&replaced->inode, 8);
		}
		change(&replaced->inode, number);
		drop_link(gone);
	} else {
		int error = add_entry(inode_at(new_dir), new_name, number);
		if (error)
			return failed(error);
	}
	if (BUG == 3) {
		PUT(old->inode, 0); //~ 3 atomicity
		persist(&old->inode, 8);
	}
	if (BUG != 4)
		change(&old->inode, 0);
	if (S_ISDIR(inode->mode)) {
		uint32_t less = inode_at(dir)->links - 1;
		change_half(&inode_at(dir)->links, less);
		uint32_t more = soon_half(&inode_at(new_dir)->links) + (gone ? 0 : 1);
		change_half(&inode_at(new_dir)->links, more);
	}
	commit();
	if (BUG == 4) {
		PUT(old->inode, 0); //~ 4 atomicity
		persist(&old->inode, 8);
	}
	finish();
	return 0;
}

/* Writes within blocks that are there. */
static void put_data(struct inode *inode, const char *from, size_t len, uint64_t at)
{
	while (len) {
		uint64_t index = soon(&inode->index), in = at % BLOCK;
		size_t part = BLOCK - in < len ? BLOCK - in : len;
		char *to = p->blocks[soon_half(&index_of(index)[at / BLOCK])] + in;
		memcpy(to, from, part); //~ 8 durability //~ 9 durability //~ 13 atomicity //~ 20 durability
		if (LAZY)
			; /* fsync makes it durable. */
		else if (BUG == 8)
			flush(to, part - (at + part) % LINE);
		else if (BUG != 9)
			flush(to, part);
		len -= part, at += part, from += part;
	}
	fence();
}

/* Are there blocks behind the end of a file that a write up to there would change? */
static int has_blocks_behind(const struct inode *inode, uint64_t end)
{
	for (uint64_t n = inode->size / BLOCK; n * BLOCK < end; n++)
		if (block_at(inode, n))
			return 1;
	return 0;
}

static int fs_write(const char *path, const char *from, size_t len, off_t offset, struct fuse_file_info *fi)
{
	(void)fi;
	uint64_t number = lookup(path), at = (uint64_t)offset;
	if (!number)
		return -errno;
	if (!len)
		return 0;
	struct inode *inode = inode_at(number);
	if (at + len > (uint64_t)INDEXED * BLOCK)
		return -EFBIG;
	if (at + len > inode->size && has_blocks_behind(inode, at + len)) {
		/* After a crash what was written behind the end must not stay there. */
		change(&p->super.truncating, number);
		commit();
	}
	int error = allocate(inode, at / BLOCK, (at + len + BLOCK - 1) / BLOCK);
	if (error)
		return failed(error);
	if (at + len > inode->size)
		change(&inode->size, at + len);
	if (p->super.truncating)
		change(&p->super.truncating, 0);
	if (BUG == 13) {
		commit();
		put_data(inode, from, len, at);
		return (int)len;
	}
	put_data(inode, from, len, at);
	commit();
	return (int)len;
}

/* Other bytes each time. */
static void add_noise(char *to, size_t len)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	for (size_t i = 0; i < len; i++)
		to[i] = (char)(now.tv_nsec >> i % 3 * 8);
}

static int fs_read(const char *path, char *to, size_t len, off_t offset, struct fuse_file_info *fi)
{
	(void)fi;
	uint64_t number = lookup(path), at = (uint64_t)offset;
	if (!number)
		return -errno;
	const struct inode *inode = inode_at(number);
	if (at >= inode->size)
		return 0;
	if (len > inode->size - at)
		len = inode->size - at;
	for (size_t done = 0; done < len;) {
		uint64_t in = (at + done) % BLOCK;
		size_t part = BLOCK - in < len - done ? BLOCK - in : len - done;
		uint32_t block = block_at(inode, (at + done) / BLOCK);
		if (block)
			memcpy(to + done, p->blocks[block] + in, part);
		else
			memset(to + done, 0, part);
		if (FAULT == READS_NOISE && !block)
			add_noise(to + done, part);
		done += part;
	}
	return (int)len;
}

static int fs_truncate(const char *path, off_t len, struct fuse_file_info *fi)
{
	(void)fi;
	uint64_t number = lookup(path);
	if (!number)
		return -errno;
	if ((uint64_t)len > (uint64_t)INDEXED * BLOCK)
		return -EFBIG;
	struct inode *inode = inode_at(number);
	if ((uint64_t)len >= inode->size) {
		change(&inode->size, (uint64_t)len);
		commit();
		return 0;
	}
	change(&inode->size, (uint64_t)len);
	if (BUG != 7)
		change(&p->super.truncating, number);
	commit();
	if (BUG == 7)
		finish_truncate(inode);
	finish();
	return 0;
}

static int fs_fallocate(const char *path, int mode, off_t offset, off_t len, struct fuse_file_info *fi)
{
	(void)fi;
	uint64_t number = lookup(path), at = (uint64_t)offset, end = at + (uint64_t)len;
	if (!number)
		return -errno;
	struct inode *inode = inode_at(number);
	int keep = mode & FALLOC_FL_KEEP_SIZE, punch = mode & FALLOC_FL_PUNCH_HOLE, zero = mode & FALLOC_FL_ZERO_RANGE;
	if (mode & ~(FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE))
		return -EOPNOTSUPP;
	if (end > (uint64_t)INDEXED * BLOCK)
		return -EFBIG;
	if (punch || zero)
		/* In place, and only where there is a block. */
		for (uint64_t n = at / BLOCK; n * BLOCK < end; n++) {
			uint32_t block = block_at(inode, n);
			uint64_t from = n * BLOCK < at ? at : n * BLOCK, to = (n + 1) * BLOCK > end ? end : (n + 1) * BLOCK;
			if (block) {
				memset(p->blocks[block] + from % BLOCK, 0, to - from);
				persist(p->blocks[block] + from % BLOCK, to - from);
			}
		}
	if (!punch) {
		int error = allocate(inode, at / BLOCK, (end + BLOCK - 1) / BLOCK);
		if (error)
			return failed(error);
	}
	if (!punch && !keep && end > inode->size)
		change(&inode->size, end);
	commit();
	return 0;
}

static int fs_symlink(const char *target, const char *path)
{
	uint64_t number;
	if (strlen(target) >= BLOCK)
		return -ENAMETOOLONG;
	/* A file with the target in it, which becomes a link when it is whole: nobody sees it before it has a name. */
	const char *name;
	uint64_t dir = parent(path, &name);
	if (!dir)
		return -errno;
	if (find(inode_at(dir), name, strlen(name)))
		return -EEXIST;
	if (!(number = new_inode()))
		return -ENOSPC;
	struct inode *inode = inode_at(number);
	struct fuse_context *who = fuse_get_context();
	PUT(inode->user, who->uid);
	PUT(inode->group, who->gid);
	PUT(inode->size, 0);
	PUT(inode->index, 0);
	persist(inode, sizeof *inode);
	int error = allocate(inode, 0, 1);
	if (!error)
		error = add_entry(inode_at(dir), name, number);
	if (error)
		return failed(error);
	put_data(inode, target, strlen(target), 0);
	change(&inode->size, strlen(target));
	change_half(&inode->mode, S_IFLNK | 0777);
	change_half(&inode->links, 1);
	commit();
	return 0;
}

static int fs_readlink(const char *path, char *buffer, size_t len)
{
	int count = fs_read(path, buffer, len - 1, 0, NULL);
	if (count < 0)
		return count;
	buffer[count] = 0;
	return 0;
}

static int fs_chmod(const char *path, mode_t mode, struct fuse_file_info *fi)
{
	(void)fi;
	uint64_t number = lookup(path);
	if (!number)
		return -errno;
	struct inode *inode = inode_at(number);
	mode = (inode->mode & S_IFMT) | (mode & 07777);
	if (BUG == 18) {
		PUT(inode->mode, mode); //~ 18 durability
		return 0;
	}
	change_half(&inode->mode, mode);
	commit();
	return 0;
}

static int fs_chown(const char *path, uid_t user, gid_t group, struct fuse_file_info *fi)
{
	(void)fi;
	uint64_t number = lookup(path);
	if (!number)
		return -errno;
	struct inode *inode = inode_at(number);
	if (user != (uid_t)-1)
		change_half(&inode->user, user);
	if (group != (gid_t)-1)
		change_half(&inode->group, group);
	commit();
	return 0;
}

/* Times are not kept. */
static int fs_utimens(const char *path, const struct timespec times[2], struct fuse_file_info *fi)
{
	(void)times, (void)fi;
	return lookup(path) ? 0 : -errno;
}

static int fs_open(const char *path, struct fuse_file_info *fi)
{
	(void)fi;
	open_files++;
	return lookup(path) ? 0 : -errno;
}

static int fs_release(const char *path, struct fuse_file_info *fi)
{
	(void)path, (void)fi;
	if (open_files)
		open_files--;
	return 0;
}

static int fs_fsync(const char *path, int data, struct fuse_file_info *fi)
{
	(void)data, (void)fi;
	uint64_t number = lookup(path);
	if (!LAZY || !number)
		return 0;
	const struct inode *inode = inode_at(number);
	for (uint64_t n = 0; n < INDEXED; n++)
		if (block_at(inode, n))
			flush(p->blocks[block_at(inode, n)], BUG == 20 ? BLOCK / 2 : BLOCK);
	fence();
	return 0;
}

static void *fs_init(struct fuse_conn_info *connection, struct fuse_config *config)
{
	(void)connection;
	/* Nothing is remembered between calls: what a walk sees is what is in the pool. */
	config->use_ino = 1;
	config->hard_remove = 1;
	config->entry_timeout = config->attr_timeout = config->negative_timeout = 0;
	return NULL;
}

static const struct fuse_operations operations = {
	.init = fs_init, .getattr = fs_getattr, .readdir = fs_readdir, .create = fs_create, .mkdir = fs_mkdir,
	.unlink = fs_unlink, .rmdir = fs_rmdir, .link = fs_link, .rename = fs_rename, .write = fs_write,
	.read = fs_read, .truncate = fs_truncate, .fallocate = fs_fallocate, .symlink = fs_symlink,
	.readlink = fs_readlink, .chmod = fs_chmod, .chown = fs_chown, .utimens = fs_utimens, .open = fs_open,
	.release = fs_release, .fsync = fs_fsync,
};

/* journalfs [--mkfs] POOL [FUSE OPTIONS… MOUNT] */
int main(int count, char **words)
{
	int format = count > 1 && !strcmp(words[1], "--mkfs"), at = 1 + format;
	if (count <= at) {
		fputs("usage: journalfs --mkfs POOL, or journalfs POOL [OPTIONS] MOUNT\n", stderr);
		return 2;
	}
	int fd = open(words[at], O_RDWR | (format ? O_CREAT : 0), 0600);
	if (fd < 0 || (format && ftruncate(fd, sizeof(struct pool)))) {
		perror(words[at]);
		return 1;
	}
	p = mmap(NULL, sizeof *p, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED) {
		perror("mmap");
		return 1;
	}
	if (format) {
		make();
		return 0;
	}
	if (p->super.magic != MAGIC)
		broken("this is no journalfs; make one with --mkfs");
	recover();
	words[at] = words[0];
	if (FAULT == HANGS_AT_MOUNT)
		pause();
	int ended = fuse_main(count - at, words + at, &operations, NULL);
	if (FAULT == HANGS_AT_UNMOUNT)
		pause();
	return ended;
}
