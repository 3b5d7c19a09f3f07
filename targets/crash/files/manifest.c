//! Records in a pool, and a manifest file beside it that says how many there are: the record first, then the manifest.
//! variants: 1
//! run: {bin} {pool} run
//! recover: {bin} {pool} check
#include "files.h"

#define RECORDS 3

int main(int argc, char **argv)
{
	const char *manifest = beside(argv[1], ".manifest");
	if (is_run(argc, argv)) {
		uint64_t *p = pm_create(argv[1], POOL);
		for (int i = 0; i < RECORDS; i++) {
#if HAS_BUG(1)
			write_number(manifest, i + 1);
#endif
			PUT(p[8 * i], 42); //~ 1 atomicity
			persist(&p[8 * i], 8);
#if !HAS_BUG(1)
			write_number(manifest, i + 1);
#endif
		}
		return 0;
	}
	uint64_t *p = pm_open(argv[1], POOL);
	if (!p)
		return 0;
	int records = read_number(manifest);
	for (int i = 0; i < records; i++)
		insist(p[8 * i] == 42, "the manifest has a record that the pool has not");
	return 0;
}
