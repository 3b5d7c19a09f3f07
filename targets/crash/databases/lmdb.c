//! A database of LMDB, which maps its data and its table of readers, and a pool that counts its keys: first the key, then the count.
//! variants: 1
//! run: {bin} {pool} run
//! recover: {bin} {pool} check
//! flags: -llmdb
#include "files.h"
#include <lmdb.h>

#define KEYS 3

static void expect(int code)
{
	if (code != 0)
		broken(mdb_strerror(code));
}

static MDB_env *open_environment(const char *path)
{
	MDB_env *environment;
	expect(mdb_env_create(&environment));
	expect(mdb_env_set_mapsize(environment, 1 << 18));
	expect(mdb_env_open(environment, path, MDB_NOSUBDIR, 0644));
	return environment;
}

static void put_key(MDB_env *environment, uint64_t number)
{
	MDB_txn *transaction;
	MDB_dbi database;
	MDB_val key = { sizeof number, &number }, value = key;
	expect(mdb_txn_begin(environment, NULL, 0, &transaction));
	expect(mdb_dbi_open(transaction, NULL, 0, &database));
	expect(mdb_put(transaction, database, &key, &value, 0));
	expect(mdb_txn_commit(transaction));
}

static uint64_t count_keys(MDB_env *environment)
{
	MDB_txn *transaction;
	MDB_dbi database;
	MDB_cursor *cursor;
	MDB_val key, value;
	uint64_t keys = 0;
	expect(mdb_txn_begin(environment, NULL, MDB_RDONLY, &transaction));
	expect(mdb_dbi_open(transaction, NULL, 0, &database));
	expect(mdb_cursor_open(transaction, database, &cursor));
	while (mdb_cursor_get(cursor, &key, &value, MDB_NEXT) == 0) {
		insist(value.mv_size == 8 && memcmp(key.mv_data, value.mv_data, 8) == 0, "a key has another's value");
		keys++;
	}
	return keys;
}

int main(int argc, char **argv)
{
	const char *path = beside(argv[1], ".lmdb");
	if (!is_run(argc, argv)) {
		uint64_t *p = pm_open(argv[1], POOL);
		if (!p)
			return 0;
		uint64_t keys = count_keys(open_environment(path));
		insist(keys == p[0] || keys == p[0] + 1, "the pool has not counted the keys of the database");
		return 0;
	}
	uint64_t *p = pm_create(argv[1], POOL);
	MDB_env *environment = open_environment(path);
	for (uint64_t key = 1; key <= KEYS; key++) {
#if HAS_BUG(1)
		PUT(p[0], key); //~ 1 ordering
		persist(p, 8);
		put_key(environment, key);
#else
		put_key(environment, key);
		PUT(p[0], key);
		persist(p, 8);
#endif
	}
	return 0;
}
