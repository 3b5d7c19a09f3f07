//@ build: c
//@ cflags: -O1
//@ library: ../code/plugin.c
//@ args: --watch plugin_put --watch plugin_call
//@ compare: exact lengths
// Watched functions in a library that is loaded at run time, twice.
#include "pm.h"
#include <dlfcn.h>

static long back(char *pm, long n)
{
	PUT(long, pm + 2048, n);
	return n * 2;
}

int main(int argc, char **argv)
{
	CHECK(argc > 2);
	char *pm = pm_create(argv[1], 4096), path[4096];
	snprintf(path, sizeof path, "%s/plugin.so", argv[2]);
	for (int i = 0; i < 2; i++) {
		void *library = dlopen(path, RTLD_NOW);
		CHECK(library);
		long (*put)(char *, long) = (long (*)(char *, long))dlsym(library, "plugin_put");
		long (*call)(char *, long (*)(char *, long)) =
			(long (*)(char *, long (*)(char *, long)))dlsym(library, "plugin_call");
		CHECK(put(pm, i) == 1 && call(pm, back) == 10);
		CHECK(dlclose(library) == 0);
	}
	return 0;
}
