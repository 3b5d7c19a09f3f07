// SPDX-License-Identifier: GPL-2.0
/*
 * stonefs: a small synchronous file system on persistent memory, for the tests of Fencepost. Correct as it stands; the module parameter
 * `bug=N` seeds one of its bugs (marked with `bug ==` below, each with the function that Fencepost must name).
 *
 * Layout, in 4 KiB blocks: 0 super block, 1..3 redo journal, 4..11 inodes (256 of 128 bytes), from 12 on data. Which blocks and inodes are
 * free is worked out when it is mounted. A change of metadata is one transaction: its 8-byte words go into the journal, then a commit
 * word, then to their places, then the commit word is cleared. New data is durable before a transaction links it; data in place is
 * overwritten in place.
 *
 * bug 1: words of the journal are not flushed; in tx_commit
 * bug 2: words of the journal are not fenced before the commit; in tx_commit
 * bug 3: the journal is cleared, but not durably; in journal_clear
 * bug 4: a parent's link count is changed in place; in make
 * bug 5: a link count is changed before its transaction; in stone_link
 * bug 6: a name and its link count are two transactions; in journal_apply or tx_commit
 * bug 7: rename is two transactions; in journal_apply or tx_commit
 * bug 8: the size is changed in place and not flushed; in resize
 * bug 9: data is not flushed; in stone_write
 * bug 10: a name is not durable before its entry; in entry_add
 * bug 11: what was applied is not flushed before the journal is cleared; in journal_apply
 * bug 12: the inode of a directory goes before its entry; in journal_apply or tx_commit
 * bug 13: an entry comes before its inode; in journal_apply or tx_commit
 * bug 14: recovery forgets the last word; in journal_apply or tx_commit
 * bug 15: recovery panics (BUG_ON); in tx_commit
 * bug 16: recovery panics (a bad pointer); in tx_commit
 * bug 17: a new block is not durably zero; in block_zeroed
 * bug 18: the unaligned end of a write is not flushed; in stone_write
 */
#include <linux/module.h>
#include <linux/fs.h>
#include <linux/dax.h>
#include <linux/slab.h>
#include <linux/uio.h>
#include <linux/statfs.h>
#include <linux/falloc.h>
#include <linux/mutex.h>

#define MAGIC 0x53544f4e45465331ull
#define BLOCK 4096u
#define LINE 64u
#define JOURNAL 1
#define JOURNAL_BLOCKS 3
#define INODES 4
#define INODE_COUNT 256u
#define DATA 12
#define MAX_BLOCKS 512u
#define DIRECT 10
#define NAME_BYTES 56
#define ENTRIES (BLOCK / sizeof(struct entry))
#define ROOT 1
#define TX_WORDS 512

static int bug;
module_param(bug, int, 0444);

struct record {			/* an inode: two lines */
	u64 mode;		/* 0: free */
	u64 links;
	u64 size;
	u64 owner;		/* uid, gid << 32 */
	u64 blocks[DIRECT];	/* 0: a hole */
	u64 unused[2];
};

struct entry {			/* of a directory: one line */
	u64 number;		/* 0: free */
	char name[NAME_BYTES];
};

struct word {
	u64 at;			/* offset from the start of PM */
	u64 value;
};

struct journal {
	u64 committed;		/* number of words; 0: nothing to do */
	u64 pad[7];
	struct word words[TX_WORDS];
};

struct super {
	u64 magic;
};

struct stone {
	struct dax_device *dax;
	char *pm;
	struct mutex lock;
	bool used[MAX_BLOCKS];
	bool busy[INODE_COUNT];	/* without a name, but still open: the number is not free yet */
	struct word tx[TX_WORDS];
	unsigned count;
};

/* ---- persistence */

static void flush(const void *from, size_t len)
{
	uintptr_t at = (uintptr_t)from & ~(uintptr_t)(LINE - 1);

	for (; at < (uintptr_t)from + len; at += LINE)
		clwb((void *)at);
}

static void fence(void)
{
	asm volatile("sfence" ::: "memory");
}

static void persist(const void *from, size_t len)
{
	flush(from, len);
	fence();
}

static void put(u64 *at, u64 value)
{
	WRITE_ONCE(*at, value);
}

/* ---- transactions */

static struct journal *journal_of(struct stone *s)
{
	return (struct journal *)(s->pm + JOURNAL * BLOCK);
}

static void tx_begin(struct stone *s)
{
	s->count = 0;
}

/* The word will have this value; a later one counts. */
static void tx_set(struct stone *s, u64 *at, u64 value)
{
	u64 offset = (char *)at - s->pm;
	unsigned i;

	for (i = 0; i < s->count; i++)
		if (s->tx[i].at == offset)
			break;
	if (i == TX_WORDS)
		return;
	s->tx[i].at = offset;
	s->tx[i].value = value;
	if (i == s->count)
		s->count++;
}

/* The value as the transaction will leave it. */
static u64 tx_get(struct stone *s, u64 *at)
{
	u64 offset = (char *)at - s->pm;
	unsigned i;

	for (i = 0; i < s->count; i++)
		if (s->tx[i].at == offset)
			return s->tx[i].value;
	return *at;
}

static void journal_apply(struct stone *s, const struct word *words, unsigned count)
{
	unsigned i;

	for (i = 0; i < count; i++) {
		u64 *at = (u64 *)(s->pm + words[i].at);

		put(at, words[i].value);
		/* bug 11: what was applied is not flushed before the journal is cleared */
		if (bug != 11)
			flush(at, 8);
	}
	fence();
}

static void journal_clear(struct stone *s)
{
	struct journal *j = journal_of(s);

	put(&j->committed, 0);
	/* bug 3: a journal that is cleared, but not durably, is replayed over what came later */
	if (bug != 3)
		persist(&j->committed, 8);
}

static void tx_commit(struct stone *s)
{
	struct journal *j = journal_of(s);

	if (!s->count)
		return;
	memcpy(j->words, s->tx, s->count * sizeof(struct word));
	/* bug 1: the words of the journal are not flushed; bug 2: nor fenced before they are committed */
	if (bug != 1)
		flush(j->words, s->count * sizeof(struct word));
	if (bug != 2)
		fence();
	put(&j->committed, s->count);
	persist(&j->committed, 8);
	journal_apply(s, s->tx, s->count);
	journal_clear(s);
	s->count = 0;
}

static int journal_replay(struct stone *s)
{
	struct journal *j = journal_of(s);
	u64 count = j->committed;
	u64 i;

	if (!count)
		return 0;
	/* bug 15: a check that is wrong, and a machine that stops for it */
	if (bug == 15)
		BUG_ON(count > 2);
	/* bug 16: follows a pointer that only a mounted file system has */
	if (bug == 16 && count > 4)
		put((u64 *)(unsigned long)(count * 8), 1);
	/* bug 14: the last word is forgotten */
	if (bug == 14)
		count--;
	if (count > TX_WORDS)
		return -EINVAL;
	for (i = 0; i < count; i++)
		if (j->words[i].at >= MAX_BLOCKS * BLOCK)
			return -EINVAL;
	journal_apply(s, j->words, count);
	journal_clear(s);
	return 0;
}

/* ---- inodes and blocks */

static struct record *record_of(struct stone *s, u64 number)
{
	return (struct record *)(s->pm + INODES * BLOCK) + number;
}

static struct stone *stone_of(struct super_block *sb)
{
	return sb->s_fs_info;
}

static char *block_at(struct stone *s, u64 block)
{
	return s->pm + block * BLOCK;
}

static u64 block_alloc(struct stone *s)
{
	u64 block;

	for (block = DATA; block < MAX_BLOCKS; block++)
		if (!s->used[block]) {
			s->used[block] = true;
			return block;
		}
	return 0;
}

/* A new block that is durably zero. */
static u64 block_zeroed(struct stone *s)
{
	u64 block = block_alloc(s);

	if (block) {
		memset(block_at(s, block), 0, BLOCK);
		/* bug 17: what a block held before can come back */
		if (bug != 17)
			persist(block_at(s, block), BLOCK);
	}
	return block;
}

static u64 record_alloc(struct stone *s)
{
	u64 number;

	for (number = ROOT + 1; number < INODE_COUNT; number++)
		if (!record_of(s, number)->mode && !s->busy[number])
			return number;
	return 0;
}

static const struct inode_operations dir_operations, file_operations_inode;
static const struct file_operations dir_file_operations, file_operations;

static void inode_fill(struct inode *inode, struct record *r)
{
	inode->i_mode = r->mode;
	i_uid_write(inode, (u32)r->owner);
	i_gid_write(inode, (u32)(r->owner >> 32));
	set_nlink(inode, r->links);
	inode->i_size = r->size;
	inode->i_atime = inode->i_mtime = inode->i_ctime = current_time(inode);
	if (S_ISDIR(inode->i_mode)) {
		inode->i_op = &dir_operations;
		inode->i_fop = &dir_file_operations;
	} else {
		inode->i_op = &file_operations_inode;
		inode->i_fop = &file_operations;
	}
}

static struct inode *inode_get(struct super_block *sb, u64 number)
{
	struct inode *inode;

	if (!number || number >= INODE_COUNT || !record_of(stone_of(sb), number)->mode)
		return ERR_PTR(-EIO);
	inode = iget_locked(sb, number);
	if (!inode)
		return ERR_PTR(-ENOMEM);
	if (inode->i_state & I_NEW) {
		inode_fill(inode, record_of(stone_of(sb), number));
		unlock_new_inode(inode);
	}
	return inode;
}

/* The cached inode follows what the transaction has made of its record. */
static void inode_refresh(struct inode *inode)
{
	struct record *r = record_of(stone_of(inode->i_sb), inode->i_ino);

	if (!r->mode)
		stone_of(inode->i_sb)->busy[inode->i_ino] = true;
	set_nlink(inode, r->mode ? r->links : 0);
	inode->i_size = r->size;
	inode->i_mode = r->mode ? r->mode : inode->i_mode;
}

/* ---- directories */

static struct entry *entry_find(struct stone *s, struct record *dir, const struct qstr *name)
{
	unsigned b, i;

	for (b = 0; b < DIRECT; b++) {
		struct entry *entries = (struct entry *)block_at(s, dir->blocks[b]);

		for (i = 0; dir->blocks[b] && i < ENTRIES; i++)
			if (entries[i].number && strlen(entries[i].name) == name->len &&
			    !memcmp(entries[i].name, name->name, name->len))
				return &entries[i];
	}
	return NULL;
}

/* A free entry; the directory grows by a block if need be. */
static struct entry *entry_free(struct stone *s, struct record *dir)
{
	unsigned b, i;
	u64 block;

	for (b = 0; b < DIRECT; b++) {
		struct entry *entries;

		if (!tx_get(s, &dir->blocks[b])) {
			block = block_zeroed(s);
			if (!block)
				return NULL;
			tx_set(s, &dir->blocks[b], block);
			return (struct entry *)block_at(s, block);
		}
		entries = (struct entry *)block_at(s, dir->blocks[b]);
		for (i = 0; i < ENTRIES; i++)
			/* Not one that this transaction frees: its name is still in use if there is a crash. */
			if (!entries[i].number && !tx_get(s, &entries[i].number))
				return &entries[i];
	}
	return NULL;
}

/* The name is durable before the transaction makes the entry valid. */
static int entry_add(struct stone *s, struct record *dir, const struct qstr *name, u64 number)
{
	struct entry *e;

	if (name->len >= NAME_BYTES)
		return -ENAMETOOLONG;
	e = entry_free(s, dir);
	if (!e)
		return -ENOSPC;
	memset(e->name, 0, NAME_BYTES);
	memcpy(e->name, name->name, name->len);
	/* bug 10: the entry can be valid before its name is */
	if (bug != 10)
		persist(e->name, NAME_BYTES);
	tx_set(s, &e->number, number);
	return 0;
}

static bool dir_empty(struct stone *s, struct record *dir)
{
	unsigned b, i;

	for (b = 0; b < DIRECT; b++)
		for (i = 0; dir->blocks[b] && i < ENTRIES; i++)
			if (((struct entry *)block_at(s, dir->blocks[b]))[i].number)
				return false;
	return true;
}

static struct dentry *stone_lookup(struct inode *dir, struct dentry *dentry, unsigned int flags)
{
	struct stone *s = stone_of(dir->i_sb);
	struct inode *inode = NULL;
	struct entry *e;

	if (dentry->d_name.len >= NAME_BYTES)
		return ERR_PTR(-ENAMETOOLONG);
	mutex_lock(&s->lock);
	e = entry_find(s, record_of(s, dir->i_ino), &dentry->d_name);
	if (e)
		inode = inode_get(dir->i_sb, e->number);
	mutex_unlock(&s->lock);
	return d_splice_alias(inode, dentry);
}

/* Frees a record and its blocks with the transaction; the blocks can be used again after it. */
static void record_free(struct stone *s, struct record *r, bool *freed)
{
	unsigned b;

	tx_set(s, &r->mode, 0);
	for (b = 0; b < DIRECT; b++) {
		u64 block = tx_get(s, &r->blocks[b]);

		if (block && block < MAX_BLOCKS)
			freed[block] = true;
		tx_set(s, &r->blocks[b], 0);
	}
}

static void blocks_freed(struct stone *s, const bool *freed)
{
	unsigned i;

	for (i = DATA; i < MAX_BLOCKS; i++)
		if (freed[i])
			s->used[i] = false;
}

static int make(struct inode *dir, struct dentry *dentry, umode_t mode)
{
	struct stone *s = stone_of(dir->i_sb);
	struct record *parent = record_of(s, dir->i_ino), *r;
	struct inode *inode;
	u64 number;
	int error = -ENOSPC;

	mutex_lock(&s->lock);
	tx_begin(s);
	number = record_alloc(s);
	if (!number)
		goto out;
	r = record_of(s, number);
	/* bug 13: the entry is there before the inode is */
	if (bug == 13) {
		error = entry_add(s, parent, &dentry->d_name, number);
		if (error)
			goto out;
		tx_commit(s);
		tx_begin(s);
	}
	tx_set(s, &r->mode, mode);
	tx_set(s, &r->links, S_ISDIR(mode) ? 2 : 1);
	tx_set(s, &r->size, 0);
	tx_set(s, &r->owner, 0);
	if (S_ISDIR(mode)) {
		/* bug 4: the parent's link count is changed in place, and not flushed */
		if (bug == 4)
			put(&parent->links, parent->links + 1);
		else
			tx_set(s, &parent->links, parent->links + 1);
	}
	if (bug != 13) {
		error = entry_add(s, parent, &dentry->d_name, number);
		if (error)
			goto out;
	}
	tx_commit(s);
	inode_refresh(dir);
	inode = inode_get(dir->i_sb, number);
	error = PTR_ERR_OR_ZERO(inode);
	if (!error)
		d_instantiate(dentry, inode);
out:
	mutex_unlock(&s->lock);
	return error;
}

static int stone_create(struct user_namespace *ns, struct inode *dir, struct dentry *dentry, umode_t mode, bool excl)
{
	return make(dir, dentry, S_IFREG | (mode & 07777));
}

static int stone_mkdir(struct user_namespace *ns, struct inode *dir, struct dentry *dentry, umode_t mode)
{
	return make(dir, dentry, S_IFDIR | (mode & 07777));
}

static int stone_link(struct dentry *old, struct inode *dir, struct dentry *dentry)
{
	struct inode *inode = d_inode(old);
	struct stone *s = stone_of(dir->i_sb);
	struct record *r = record_of(s, inode->i_ino);
	int error;

	mutex_lock(&s->lock);
	tx_begin(s);
	error = entry_add(s, record_of(s, dir->i_ino), &dentry->d_name, inode->i_ino);
	if (!error) {
		/* bug 5: the link count is changed in place, before the transaction */
		if (bug == 5) {
			put(&r->links, r->links + 1);
			persist(&r->links, 8);
		} else {
			tx_set(s, &r->links, r->links + 1);
		}
		tx_commit(s);
		inode_refresh(inode);
		ihold(inode);
		d_instantiate(dentry, inode);
	}
	mutex_unlock(&s->lock);
	return error;
}

/* Takes a name away from what it names, within the transaction. */
static void drop(struct stone *s, struct record *dir, struct entry *e, bool *freed)
{
	struct record *r = record_of(s, e->number);
	bool is_dir = S_ISDIR(r->mode);

	tx_set(s, &e->number, 0);
	/* bug 6: the entry and the link count are two transactions */
	if (bug == 6) {
		tx_commit(s);
		tx_begin(s);
	}
	if (is_dir)
		tx_set(s, &dir->links, tx_get(s, &dir->links) - 1);
	if (is_dir || r->links == 1)
		record_free(s, r, freed);
	else
		tx_set(s, &r->links, r->links - 1);
}

static int take_away(struct inode *dir, struct dentry *dentry, bool want_dir)
{
	struct stone *s = stone_of(dir->i_sb);
	struct inode *inode = d_inode(dentry);
	struct record *parent = record_of(s, dir->i_ino);
	bool *freed = kcalloc(MAX_BLOCKS, sizeof(bool), GFP_KERNEL);
	struct entry *e;
	int error = -ENOENT;

	if (!freed)
		return -ENOMEM;
	mutex_lock(&s->lock);
	e = entry_find(s, parent, &dentry->d_name);
	if (!e)
		goto out;
	error = -ENOTEMPTY;
	if (want_dir && !dir_empty(s, record_of(s, e->number)))
		goto out;
	tx_begin(s);
	/* bug 12: the inode of a directory is freed before its entry */
	if (bug == 12 && want_dir) {
		record_free(s, record_of(s, e->number), freed);
		tx_commit(s);
		tx_begin(s);
		tx_set(s, &e->number, 0);
		tx_set(s, &parent->links, parent->links - 1);
	} else {
		drop(s, parent, e, freed);
	}
	tx_commit(s);
	blocks_freed(s, freed);
	inode_refresh(dir);
	inode_refresh(inode);
	error = 0;
out:
	mutex_unlock(&s->lock);
	kfree(freed);
	return error;
}

static int stone_unlink(struct inode *dir, struct dentry *dentry)
{
	return take_away(dir, dentry, false);
}

static int stone_rmdir(struct inode *dir, struct dentry *dentry)
{
	return take_away(dir, dentry, true);
}

static int stone_rename(struct user_namespace *ns, struct inode *from, struct dentry *old, struct inode *to,
			struct dentry *new, unsigned int flags)
{
	struct stone *s = stone_of(from->i_sb);
	struct record *source = record_of(s, from->i_ino), *goal = record_of(s, to->i_ino);
	bool *freed = kcalloc(MAX_BLOCKS, sizeof(bool), GFP_KERNEL);
	struct inode *over = d_inode(new);
	bool is_dir = d_is_dir(old);
	struct entry *e, *f;
	u64 number;
	int error = -EINVAL;

	if (!freed)
		return -ENOMEM;
	mutex_lock(&s->lock);
	if (flags & ~RENAME_NOREPLACE)
		goto out;
	error = -ENOENT;
	e = entry_find(s, source, &old->d_name);
	if (!e)
		goto out;
	number = e->number;
	f = entry_find(s, goal, &new->d_name);
	error = -ENOTEMPTY;
	if (f && is_dir && !dir_empty(s, record_of(s, f->number)))
		goto out;
	tx_begin(s);
	tx_set(s, &e->number, 0);
	/* bug 7: the old name goes away in a transaction of its own */
	if (bug == 7) {
		tx_commit(s);
		tx_begin(s);
	}
	if (f) {
		drop(s, goal, f, freed);
		tx_set(s, &f->number, number);
	} else {
		error = entry_add(s, goal, &new->d_name, number);
		if (error)
			goto out;
	}
	if (is_dir && source != goal) {
		tx_set(s, &source->links, tx_get(s, &source->links) - 1);
		tx_set(s, &goal->links, tx_get(s, &goal->links) + 1);
	}
	tx_commit(s);
	blocks_freed(s, freed);
	inode_refresh(from);
	inode_refresh(to);
	if (over)
		inode_refresh(over);
	error = 0;
out:
	mutex_unlock(&s->lock);
	kfree(freed);
	return error;
}

static int stone_iterate(struct file *file, struct dir_context *ctx)
{
	struct inode *inode = file_inode(file);
	struct stone *s = stone_of(inode->i_sb);
	struct record *dir = record_of(s, inode->i_ino);

	if (!dir_emit_dots(file, ctx))
		return 0;
	for (; ctx->pos - 2 < (loff_t)(DIRECT * ENTRIES); ctx->pos++) {
		u64 block = dir->blocks[(ctx->pos - 2) / ENTRIES];
		struct entry *e;

		if (!block)
			continue;
		e = (struct entry *)block_at(s, block) + (ctx->pos - 2) % ENTRIES;
		if (e->number && !dir_emit(ctx, e->name, strnlen(e->name, NAME_BYTES), e->number, DT_UNKNOWN))
			break;
	}
	return 0;
}

/* ---- files */

/*
 * Before a file grows to a size: what lies behind its end becomes zero, durably. Blocks behind the end are there after fallocate that keeps
 * the size, and a write that never got its size may have filled them.
 */
static void zero_behind(struct stone *s, struct record *r, u64 to)
{
	u64 at, len;

	to = min_t(u64, round_up(to, BLOCK), DIRECT * BLOCK);
	for (at = r->size; at < to; at += len) {
		u64 block = r->blocks[at / BLOCK];

		len = BLOCK - at % BLOCK;
		if (block) {
			memset(block_at(s, block) + at % BLOCK, 0, len);
			persist(block_at(s, block) + at % BLOCK, len);
		}
	}
}

static noinline int resize(struct stone *s, struct inode *inode, u64 size)
{
	struct record *r = record_of(s, inode->i_ino);
	bool *freed;
	unsigned b;

	if (size > DIRECT * BLOCK)
		return -EFBIG;
	freed = kcalloc(MAX_BLOCKS, sizeof(bool), GFP_KERNEL);
	if (!freed)
		return -ENOMEM;
	if (size > r->size)
		zero_behind(s, r, size);
	tx_begin(s);
	/* bug 8: the size is changed in place, and never flushed */
	if (bug == 8)
		put(&r->size, size);
	else
		tx_set(s, &r->size, size);
	for (b = DIV_ROUND_UP(size, BLOCK); b < DIRECT; b++)
		if (r->blocks[b]) {
			freed[r->blocks[b]] = true;
			tx_set(s, &r->blocks[b], 0);
		}
	tx_commit(s);
	blocks_freed(s, freed);
	inode->i_size = size;
	kfree(freed);
	return 0;
}

static int stone_setattr(struct user_namespace *ns, struct dentry *dentry, struct iattr *attr)
{
	struct inode *inode = d_inode(dentry);
	struct stone *s = stone_of(inode->i_sb);
	struct record *r = record_of(s, inode->i_ino);
	int error = setattr_prepare(ns, dentry, attr);

	if (error)
		return error;
	if (!inode->i_nlink)
		return -ESTALE;
	mutex_lock(&s->lock);
	if (attr->ia_valid & ATTR_SIZE)
		error = resize(s, inode, attr->ia_size);
	if (!error) {
		setattr_copy(ns, inode, attr);
		tx_begin(s);
		tx_set(s, &r->mode, inode->i_mode);
		tx_set(s, &r->owner, (u64)i_uid_read(inode) | (u64)i_gid_read(inode) << 32);
		if (attr->ia_valid & (ATTR_MODE | ATTR_UID | ATTR_GID))
			tx_commit(s);
	}
	mutex_unlock(&s->lock);
	return error;
}

static ssize_t stone_read(struct kiocb *iocb, struct iov_iter *to)
{
	struct inode *inode = file_inode(iocb->ki_filp);
	struct stone *s = stone_of(inode->i_sb);
	struct record *r = record_of(s, inode->i_ino);
	ssize_t done = 0;

	while (iov_iter_count(to) && iocb->ki_pos < (loff_t)r->size) {
		u64 at = iocb->ki_pos, block = r->blocks[at / BLOCK];
		size_t len = min_t(u64, min_t(u64, BLOCK - at % BLOCK, r->size - at), iov_iter_count(to));
		size_t copied = block ? copy_to_iter(block_at(s, block) + at % BLOCK, len, to) : iov_iter_zero(len, to);

		done += copied;
		iocb->ki_pos += copied;
		if (copied < len)
			break;
	}
	return done;
}

/* Data is durable when this returns. */
static void data_persist(char *at, size_t len)
{
	/* bug 9: data is not flushed; bug 18: an end that fills no line is not */
	if (bug == 9)
		return;
	if (bug == 18)
		len = ((uintptr_t)(at + len) & ~(uintptr_t)(LINE - 1)) - (uintptr_t)at;
	if ((ssize_t)len > 0)
		flush(at, len);
	fence();
}

static ssize_t stone_write(struct kiocb *iocb, struct iov_iter *from)
{
	struct inode *inode = file_inode(iocb->ki_filp);
	struct stone *s = stone_of(inode->i_sb);
	struct record *r = record_of(s, inode->i_ino);
	ssize_t done = 0, checked;

	inode_lock(inode);
	checked = generic_write_checks(iocb, from);
	if (checked <= 0)
		goto unlock;
	checked = -ESTALE;
	if (!inode->i_nlink)
		goto unlock;
	mutex_lock(&s->lock);
	if (iocb->ki_pos + iov_iter_count(from) > r->size)
		zero_behind(s, r, iocb->ki_pos + iov_iter_count(from));
	tx_begin(s);
	while (iov_iter_count(from)) {
		u64 at = iocb->ki_pos + done, index = at / BLOCK, block;
		size_t len = min_t(u64, BLOCK - at % BLOCK, iov_iter_count(from));
		size_t copied;

		if (index >= DIRECT)
			break;
		block = r->blocks[index];
		if (!block) {
			block = block_zeroed(s);
			if (!block)
				break;
			tx_set(s, &r->blocks[index], block);
		}
		copied = copy_from_iter(block_at(s, block) + at % BLOCK, len, from);
		data_persist(block_at(s, block) + at % BLOCK, copied);
		done += copied;
		if (copied < len)
			break;
	}
	if (done && iocb->ki_pos + done > (loff_t)r->size)
		tx_set(s, &r->size, iocb->ki_pos + done);
	tx_commit(s);
	inode->i_size = r->size;
	iocb->ki_pos += done;
	mutex_unlock(&s->lock);
	checked = done ? done : -ENOSPC;
unlock:
	inode_unlock(inode);
	return checked;
}

static long stone_fallocate(struct file *file, int mode, loff_t offset, loff_t len)
{
	struct inode *inode = file_inode(file);
	struct stone *s = stone_of(inode->i_sb);
	struct record *r = record_of(s, inode->i_ino);
	u64 index;
	long error = 0;

	if (mode & ~FALLOC_FL_KEEP_SIZE)
		return -EOPNOTSUPP;
	if (offset + len > DIRECT * BLOCK)
		return -EFBIG;
	inode_lock(inode);
	if (!inode->i_nlink) {
		inode_unlock(inode);
		return -ESTALE;
	}
	mutex_lock(&s->lock);
	if (!(mode & FALLOC_FL_KEEP_SIZE) && offset + len > (loff_t)r->size)
		zero_behind(s, r, offset + len);
	tx_begin(s);
	for (index = offset / BLOCK; index < DIV_ROUND_UP(offset + len, BLOCK); index++)
		if (!r->blocks[index]) {
			u64 block = block_zeroed(s);

			if (!block) {
				error = -ENOSPC;
				break;
			}
			tx_set(s, &r->blocks[index], block);
		}
	if (!error && !(mode & FALLOC_FL_KEEP_SIZE) && offset + len > (loff_t)r->size)
		tx_set(s, &r->size, offset + len);
	tx_commit(s);
	inode->i_size = r->size;
	mutex_unlock(&s->lock);
	inode_unlock(inode);
	return error;
}

/* Everything is synchronous. */
static int stone_fsync(struct file *file, loff_t start, loff_t end, int datasync)
{
	return 0;
}

/* Nothing is cached, so every access is direct. */
static int stone_open(struct inode *inode, struct file *file)
{
	file->f_mode |= FMODE_CAN_ODIRECT;
	return 0;
}

static const struct inode_operations dir_operations = {
	.lookup = stone_lookup,
	.create = stone_create,
	.mkdir = stone_mkdir,
	.rmdir = stone_rmdir,
	.link = stone_link,
	.unlink = stone_unlink,
	.rename = stone_rename,
	.setattr = stone_setattr,
};

static const struct inode_operations file_operations_inode = {
	.setattr = stone_setattr,
};

static const struct file_operations dir_file_operations = {
	.iterate_shared = stone_iterate,
	.read = generic_read_dir,
	.llseek = generic_file_llseek,
	.fsync = stone_fsync,
};

static const struct file_operations file_operations = {
	.open = stone_open,
	.read_iter = stone_read,
	.write_iter = stone_write,
	.fallocate = stone_fallocate,
	.llseek = generic_file_llseek,
	.fsync = stone_fsync,
};

/* ---- mounting */

static int stone_statfs(struct dentry *dentry, struct kstatfs *buf)
{
	buf->f_type = (u32)MAGIC;
	buf->f_bsize = BLOCK;
	buf->f_blocks = MAX_BLOCKS;
	buf->f_namelen = NAME_BYTES - 1;
	return 0;
}

static void stone_evict(struct inode *inode)
{
	struct stone *s = stone_of(inode->i_sb);

	truncate_inode_pages_final(&inode->i_data);
	clear_inode(inode);
	mutex_lock(&s->lock);
	s->busy[inode->i_ino] = false;
	mutex_unlock(&s->lock);
}

static const struct super_operations super_operations = {
	.statfs = stone_statfs,
	.evict_inode = stone_evict,
	.drop_inode = generic_delete_inode,
};

static void format(struct stone *s)
{
	struct record *root = record_of(s, ROOT);

	memset(s->pm, 0, DATA * BLOCK);
	root->mode = S_IFDIR | 0755;
	root->links = 2;
	persist(s->pm, DATA * BLOCK);
	put(&((struct super *)s->pm)->magic, MAGIC);
	persist(s->pm, 8);
}

static int find_used(struct stone *s)
{
	u64 number;
	unsigned b;

	for (number = ROOT; number < INODE_COUNT; number++) {
		struct record *r = record_of(s, number);

		for (b = 0; r->mode && b < DIRECT; b++) {
			if (r->blocks[b] >= MAX_BLOCKS)
				return -EUCLEAN;
			s->used[r->blocks[b]] = true;
		}
	}
	return 0;
}

static int stone_fill(struct super_block *sb, void *data, int silent)
{
	struct stone *s = kzalloc(sizeof(*s), GFP_KERNEL);
	struct inode *root;
	u64 start;
	void *pm;
	int error = -EINVAL;

	if (!s)
		return -ENOMEM;
	mutex_init(&s->lock);
	sb->s_fs_info = s;
	s->dax = fs_dax_get_by_bdev(sb->s_bdev, &start, NULL, NULL);
	if (!s->dax)
		return -EINVAL;
	if (dax_direct_access(s->dax, 0, MAX_BLOCKS, DAX_ACCESS, &pm, NULL) < (long)MAX_BLOCKS)
		return -EINVAL;
	s->pm = pm;
	if (((struct super *)s->pm)->magic != MAGIC)
		format(s);
	error = journal_replay(s);
	if (!error)
		error = find_used(s);
	if (error)
		return error;
	sb->s_magic = (u32)MAGIC;
	sb->s_op = &super_operations;
	sb->s_blocksize = BLOCK;
	sb->s_blocksize_bits = 12;
	sb->s_maxbytes = DIRECT * BLOCK;
	sb->s_time_gran = 1;
	root = inode_get(sb, ROOT);
	if (IS_ERR(root))
		return PTR_ERR(root);
	sb->s_root = d_make_root(root);
	return sb->s_root ? 0 : -ENOMEM;
}

static struct dentry *stone_mount(struct file_system_type *type, int flags, const char *dev, void *data)
{
	return mount_bdev(type, flags, dev, data, stone_fill);
}

static void stone_kill(struct super_block *sb)
{
	struct stone *s = stone_of(sb);

	kill_block_super(sb);
	if (s && s->dax)
		fs_put_dax(s->dax, NULL);
	kfree(s);
}

static struct file_system_type stone_type = {
	.owner = THIS_MODULE,
	.name = "stonefs",
	.mount = stone_mount,
	.kill_sb = stone_kill,
	.fs_flags = FS_REQUIRES_DEV,
};

static int __init stone_start(void)
{
	return register_filesystem(&stone_type);
}

static void __exit stone_end(void)
{
	unregister_filesystem(&stone_type);
}

module_init(stone_start);
module_exit(stone_end);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("A small file system on persistent memory, for the tests of Fencepost");
