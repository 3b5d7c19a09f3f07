//@ build: c
//@ cflags: -O1 -mclwb -pthread
//@ needs: clwb
// A record that is zeroed and then filled in: its bytes are stored twice, which is common and harmless.
#include "pm.h"

struct record {
	uint64_t key;
	uint64_t value[6];
};

int main(int argc, char **argv)
{
	struct record *r = pm_create(argv[1]);
	for (int i = 0; i < 20; i++) {
		memset(r, 0, sizeof *r);
		PUT(r->key, i);
		PUT(r->value[i % 6], i);
		PERSIST(r);
	}
	return 0;
}
