/* What the programs share that keep a SQLite database beside their pool. */
#include "files.h"
#include <sqlite3.h>

#define ROWS 3

static inline void execute(sqlite3 *database, const char *statement)
{
	if (sqlite3_exec(database, statement, NULL, NULL, NULL) != SQLITE_OK)
		broken(sqlite3_errmsg(database));
}

static inline sqlite3 *open_database(const char *path, const char *journal)
{
	sqlite3 *database;
	if (sqlite3_open(path, &database) != SQLITE_OK)
		broken("the database cannot be opened");
	execute(database, journal);
	execute(database, "PRAGMA synchronous=FULL");
	execute(database, "CREATE TABLE IF NOT EXISTS rows(number INTEGER)");
	return database;
}

static int take_number(void *number, int columns, char **values, char **names)
{
	(void)columns, (void)names;
	*(int *)number = strcmp(values[0], "ok") == 0 ? 1 : atoi(values[0]);
	return 0;
}

/* The one number that a query answers; 1 for "ok". */
static inline int ask(sqlite3 *database, const char *query)
{
	int number = -1;
	if (sqlite3_exec(database, query, take_number, &number, NULL) != SQLITE_OK)
		broken(sqlite3_errmsg(database));
	return number;
}

static inline void insert_row(sqlite3 *database)
{
	execute(database, "INSERT INTO rows VALUES (1)");
}

/* Recovery: the database is whole, and the pool has counted its rows, or all but the last one. */
static inline int check_rows(const char *pool, const char *path, const char *journal)
{
	uint64_t *p = pm_open(pool, POOL);
	if (!p)
		return 0;
	sqlite3 *database = open_database(path, journal);
	insist(ask(database, "PRAGMA integrity_check") == 1, "the database is damaged");
	uint64_t rows = (uint64_t)ask(database, "SELECT count(*) FROM rows");
	insist(rows == p[0] || rows == p[0] + 1, "the pool has not counted the rows of the database");
	return 0;
}
