//! A SQLite database with a write-ahead log (its index is mapped, too), and a pool that counts its rows: first the row, then the count.
//! variants: 1
//! run: {bin} {pool} run
//! recover: {bin} {pool} check
//! flags: -lsqlite3
//! options: --strategy program-order,guaranteed-only,visible:12
#include "sqlite.h"

#define JOURNAL "PRAGMA journal_mode=WAL"

int main(int argc, char **argv)
{
	const char *path = beside(argv[1], ".db");
	if (!is_run(argc, argv))
		return check_rows(argv[1], path, JOURNAL);
	uint64_t *p = pm_create(argv[1], POOL);
	sqlite3 *database = open_database(path, JOURNAL);
	for (uint64_t row = 1; row <= ROWS; row++) {
#if HAS_BUG(1)
		PUT(p[0], row); //~ 1 atomicity
		persist(p, 8);
		insert_row(database);
#else
		insert_row(database);
		PUT(p[0], row);
		persist(p, 8);
#endif
	}
	return sqlite3_close(database) != SQLITE_OK;
}
