//@ build: c
//@ cflags: -O1
//@ library: plugin.c
// A library loaded at run time writes PM, calls back, is unloaded and loaded again.
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
	for (int i = 0; i < 3; i++) {
		void *library = dlopen(path, i % 2 ? RTLD_NOW : RTLD_LAZY);
		CHECK(library);
		long (*put)(char *, long) = (long (*)(char *, long))dlsym(library, "plugin_put");
		long (*call)(char *, long (*)(char *, long)) =
			(long (*)(char *, long (*)(char *, long)))dlsym(library, "plugin_call");
		CHECK(put && call);
		CHECK(put(pm, 10 + i) == 1 && put(pm, 20 + i) == 2);
		CHECK(call(pm, back) == 10);
		CHECK(dlclose(library) == 0);
	}
	CHECK(dlopen("./no-such-library.so", RTLD_NOW) == NULL);
	return 0;
}
