//@ build: c
//@ cflags: -O1
// /proc/self/maps: every line parses, the program, stack, heap and the pool with its permissions are there, main lies in the program.
#include "pm.h"

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	char *pm = pm_create(argv[1], 8192);
	*(char *volatile *)pm = (char *)0;
	char *heap = malloc(100);
	FILE *maps = fopen("/proc/self/maps", "r");
	CHECK(maps);
	char line[5000];
	int pool = 0, code = 0, stack = 0, heaps = 0, lines = 0;
	unsigned long previous = 0;
	while (fgets(line, sizeof line, maps)) {
		unsigned long from, to, offset, inode;
		char prot[5], device[16], name[4200] = "";
		CHECK(sscanf(line, "%lx-%lx %4s %lx %15s %lu %4199[^\n]", &from, &to, prot, &offset, device, &inode, name) >= 6);
		CHECK(from < to && from >= previous);
		previous = to;
		lines++;
		if ((unsigned long)pm >= from && (unsigned long)pm < to)
			pool += !strcmp(prot, "rw-s") && strstr(name, argv[1]) && to - from == 8192;
		if ((unsigned long)main >= from && (unsigned long)main < to)
			code += prot[2] == 'x' && strstr(name, "self_maps");
		if ((unsigned long)line >= from && (unsigned long)line < to)
			stack += strstr(name, "[stack]") != NULL;
		if ((unsigned long)heap >= from && (unsigned long)heap < to)
			heaps += strstr(name, "[heap]") != NULL;
	}
	CHECK(lines > 10 && pool == 1 && code == 1 && stack == 1 && heaps == 1);
	PUT(int, pm + 8, 1);
	return 0;
}
