//@ build: c
//@ cflags: -O1
//@ compare: exact
// Programs that keep raw pointers ask for an address and get it: by hint, and by MAP_FIXED_NOREPLACE; pointers stored in PM hold.
#include "pm.h"

struct node { struct node *next; long value; };

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	int fd = pm_file(argv[1], 16384);
	char *wish = (char *)0x200000000000;
	char *pm = pm_map_at(wish, 16384, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(pm == wish);
	struct node *head = NULL, *n = (struct node *)(pm + 64);
	for (int i = 0; i < 5; i++, n++) {
		PUT(long, &n->value, i);
		*(struct node *volatile *)&n->next = head;
		head = n;
		pm_persist(n);
	}
	CHECK(munmap(pm, 16384) == 0);
	wish = (char *)0x600000000000;
	pm = pm_map_at(wish, 16384, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED_NOREPLACE, fd, 0);
	CHECK(pm == wish);
	CHECK(munmap(pm, 16384) == 0);
	pm = pm_map_at((void *)0x200000000000, 16384, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	long sum = 0;
	for (struct node *p = head; p; p = p->next)
		sum += p->value;
	CHECK(sum == 10);
	PUT(long, pm, sum);
	return 0;
}
