//! A log in numbered files, in a folder beside the pool. Recovery lists the folder to find them; the pool counts those that are complete.
//! variants: 2
//! run: {bin} {pool} run
//! recover: {bin} {pool} check
#include "files.h"
#include <dirent.h>
#include <sys/stat.h>

#define SEGMENTS 6
#define KEPT 3

static char folder[4096];

static const char *segment(int number)
{
	static char name[4200];
	snprintf(name, sizeof name, "%s/%d.seg", folder, number);
	return name;
}

/* The directory itself must be durable, too. */
static void sync_folder(void)
{
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || fsync(fd) != 0 || close(fd) != 0)
		exit(3);
}

/* Which segments a listing shows, as bits; the same from the beginning, from the middle, and once more. */
static unsigned listed(void)
{
	DIR *dir = opendir(folder);
	if (!dir)
		return 0;
	unsigned found[3] = {0};
	long places[64] = {telldir(dir)};
	int count = 0;
	for (struct dirent *entry; (entry = readdir(dir));) {
		int number = 0;
		char end = 0;
		if (sscanf(entry->d_name, "%d.se%c", &number, &end) == 2 && end == 'g')
			found[0] |= 1u << number;
		if (++count < 64)
			places[count] = telldir(dir);
	}
	rewinddir(dir);
	while (readdir(dir))
		count--;
	insist(count == 0, "another number of entries after rewinddir");
	seekdir(dir, places[1]);
	for (struct dirent *entry; (entry = readdir(dir));)
		count++;
	closedir(dir);
	int again = 0;
	dir = opendir(folder);
	while (readdir(dir))
		again++;
	closedir(dir);
	insist(count == again - 1, "another number of entries after seekdir");
	return found[0];
}

int main(int argc, char **argv)
{
	strcpy(folder, beside(argv[1], ".d"));
	if (is_run(argc, argv)) {
		uint64_t *p = pm_create(argv[1], POOL);
		if (mkdir(folder, 0755) != 0 && errno != EEXIST)
			return 3;
		sync_folder();
		for (int i = 1; i <= SEGMENTS; i++) {
#if HAS_BUG(1)
			PUT(p[0], (uint64_t)i); //~ 1 atomicity
			persist(p, 8);
#endif
			write_number(segment(i), i);
			sync_folder();
#if !HAS_BUG(1)
			PUT(p[0], (uint64_t)i);
			persist(p, 8);
#endif
			if (i <= KEPT)
				continue;
#if HAS_BUG(2)
			unlink(segment(i - KEPT));
			PUT(p[8], (uint64_t)(i - KEPT)); //~ 2 ordering
			persist(p + 8, 8);
#else
			PUT(p[8], (uint64_t)(i - KEPT));
			persist(p + 8, 8);
			unlink(segment(i - KEPT));
#endif
		}
		return 0;
	}
	uint64_t *p = pm_open(argv[1], POOL);
	if (!p)
		return 0;
	unsigned found = listed();
	for (int i = 1; i <= SEGMENTS; i++)
		insist(!(found >> i & 1) == !exists(segment(i)), "the listing and the file disagree");
	for (int i = (int)p[8] + 1; i <= (int)p[0]; i++) {
		insist(found >> i & 1, "a segment is not there");
		insist(read_number(segment(i)) == i, "a segment is not complete");
	}
	return 0;
}
