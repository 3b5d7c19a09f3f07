/* What journalfs keeps in its pool: the layout, the redo journal, and who owns which block.
 *
 *   line 0           superblock, and the truncate list
 *   journal          words to write, then a word that says that they are all there
 *   inodes           one line each; inode 1 is the root
 *   blocks           1 KiB each: file data, directory entries, and an index block per file
 *
 * Every change of metadata is a transaction of 8-byte words. Which blocks are free is not stored: mount finds out. */
#ifndef STORE_H
#define STORE_H

#include <stdio.h>
#include "../crash/include/pm.h"

/* Data is durable after fsync only; 100 is the correct one of these. */
#define LAZY (BUG == 20 || BUG == 100)

#define MAGIC 0x31736a6c616e7275
#define BLOCK 1024
#define INODES 128
#define BLOCKS 224
#define ENTRIES 160
#define NAME 56
#define INDEXED (BLOCK / 4)
#define ROOT 1

struct super {
	uint64_t magic;
	/* The truncate list has one place: an inode whose blocks behind its end are still to be freed. */
	uint64_t truncating;
} LINE_ALIGNED;

struct word {
	uint64_t offset;
	uint64_t value;
};

struct journal {
	uint64_t count;
	uint64_t committed LINE_ALIGNED;
	struct word words[ENTRIES] LINE_ALIGNED;
};

struct inode {
	uint32_t mode;
	uint32_t links;
	uint32_t user;
	uint32_t group;
	uint64_t size;
	/* Block with the numbers of the blocks; 0: none. */
	uint64_t index;
} LINE_ALIGNED;

struct dirent {
	uint64_t inode;
	char name[NAME];
} LINE_ALIGNED;

struct pool {
	struct super super;
	struct journal journal;
	struct inode inodes[INODES];
	char blocks[BLOCKS][BLOCK] LINE_ALIGNED;
};

static struct pool *p;

/* Volatile: which blocks are in use. Block 0 is never used, so that 0 can mean none. */
static unsigned char used[BLOCKS];

static uint32_t *index_of(uint64_t block)
{
	return (uint32_t *)p->blocks[block];
}

/* A transaction: words are collected, and the last value of a word counts. */
static struct word pending[ENTRIES];
static unsigned pendings;

static void change(uint64_t *at, uint64_t value)
{
	uint64_t offset = (uint64_t)((char *)at - (char *)p);
	for (unsigned i = 0; i < pendings; i++)
		if (pending[i].offset == offset) {
			pending[i].value = value;
			return;
		}
	if (pendings == ENTRIES)
		abort();
	pending[pendings++] = (struct word){ offset, value };
}

/* What a word will be after the transaction. */
static uint64_t soon(uint64_t *at)
{
	uint64_t offset = (uint64_t)((char *)at - (char *)p);
	for (unsigned i = 0; i < pendings; i++)
		if (pending[i].offset == offset)
			return pending[i].value;
	return *at;
}

/* Half of a word: the numbers of blocks, link counts and modes are 4 bytes long. */
static void change_half(uint32_t *at, uint32_t value)
{
	uint64_t *whole = (uint64_t *)((uintptr_t)at & ~(uintptr_t)7);
	unsigned shift = (uintptr_t)at & 4 ? 32 : 0;
	uint64_t now = soon(whole);
	change(whole, (now & ~((uint64_t)UINT32_MAX << shift)) | (uint64_t)value << shift);
}

static uint32_t soon_half(uint32_t *at)
{
	uint64_t *whole = (uint64_t *)((uintptr_t)at & ~(uintptr_t)7);
	return (uint32_t)(soon(whole) >> ((uintptr_t)at & 4 ? 32 : 0));
}

static void replay(void)
{
	struct journal *j = &p->journal;
	for (uint64_t i = 0; i < j->count; i++) {
		uint64_t *at = (uint64_t *)((char *)p + j->words[i].offset);
		PUT(*at, j->words[i].value);
		flush(at, 8);
	}
	fence();
}

static void commit(void)
{
	struct journal *j = &p->journal;
	if (!pendings)
		return;
	for (unsigned i = 0; i < pendings; i++) {
		PUT(j->words[i].offset, pending[i].offset); //~ 2 ordering //~ 6 ordering
		PUT(j->words[i].value, pending[i].value); //~ 2 ordering //~ 6 ordering
	}
	PUT(j->count, pendings); //~ 2 ordering
	flush(j->words, pendings * sizeof j->words[0]);
	flush(&j->count, 8);
	if (BUG != 2)
		fence();
	PUT(j->committed, 1); //~ 17 ordering
	persist(&j->committed, 8);
	replay();
	pendings = 0;
	PUT(j->committed, 0); //~ 17 ordering
	if (BUG != 17)
		persist(&j->committed, 8);
}

static void abandon(void)
{
	pendings = 0;
}

static uint64_t free_block(void)
{
	for (uint64_t b = 1; b < BLOCKS; b++)
		if (!used[b]) {
			used[b] = 1;
			return b;
		}
	return 0;
}

/* A free block, all zeros, durable before anything can point to it. */
static uint64_t new_block(void)
{
	uint64_t b = free_block();
	if (!b)
		return 0;
	memset(p->blocks[b], 0, BLOCK); //~ 14 durability
	if (BUG != 14)
		persist(p->blocks[b], BLOCK);
	return b;
}

static uint64_t new_inode(void)
{
	for (uint64_t i = ROOT + 1; i < INODES; i++)
		if (!p->inodes[i].mode && !soon_half(&p->inodes[i].mode))
			return i;
	return 0;
}

/* The block of a file at a place; 0: a hole. */
static uint32_t block_at(const struct inode *inode, uint64_t number)
{
	return inode->index && number < INDEXED ? index_of(inode->index)[number] : 0;
}

static void free_blocks(struct inode *inode, uint64_t from)
{
	if (!inode->index)
		return;
	uint32_t *index = index_of(inode->index);
	for (uint64_t i = from; i < INDEXED; i++)
		if (index[i]) {
			used[index[i]] = 0;
			PUT(index[i], 0); //~ 7 atomicity
			flush(&index[i], 4);
		}
	fence();
}

/* Frees what lies behind the end of a file, and clears the rest of its last block. Can be done again. */
static void finish_truncate(struct inode *inode)
{
	if (inode->index) {
		uint32_t *index = index_of(inode->index);
		uint64_t last = inode->size / BLOCK, rest = inode->size % BLOCK;
		if (rest && index[last]) {
			char *tail = p->blocks[index[last]] + rest;
			memset(tail, 0, BLOCK - rest);
			persist(tail, BLOCK - rest);
		}
		free_blocks(inode, last + (rest != 0));
	}
	if (!inode->links && inode->mode) {
		/* The last name is gone: the inode goes, too. */
		if (inode->index)
			used[inode->index] = 0;
		change((uint64_t *)&inode->mode, 0);
		change(&inode->index, 0);
	}
	change(&p->super.truncating, 0);
	commit();
}

/* At mount: after the journal every word is old or new; then what is in use is found by looking. */
static void recover(void)
{
	struct journal *j = &p->journal;
	if (j->committed || (BUG == 6 && j->count)) {
		replay();
		PUT(j->committed, 0);
		persist(&j->committed, 8);
	}
	memset(used, 0, sizeof used);
	for (uint64_t i = ROOT; i < INODES; i++) {
		struct inode *inode = &p->inodes[i];
		if (!inode->mode || !inode->index)
			continue;
		used[inode->index] = 1;
		for (uint64_t k = 0; k < INDEXED; k++)
			if (index_of(inode->index)[k])
				used[index_of(inode->index)[k]] = 1;
	}
	if (p->super.truncating) {
		if (BUG == 10 && !p->inodes[p->super.truncating].index)
			abort(); //~ 10 recovery
		finish_truncate(&p->inodes[p->super.truncating]);
	}
}

static void make(void)
{
	memset(p, 0, sizeof *p);
	p->inodes[ROOT] = (struct inode){ .mode = 040755, .links = 2 };
	persist(p, sizeof *p);
	PUT(p->super.magic, MAGIC);
	persist(&p->super, sizeof p->super);
}

#endif
