/* The library that dlopen.c and watch/library.c load. */
#include "pm.h"

static long calls;

long plugin_put(char *pm, long value)
{
	PUT(long, pm + 8 * calls, value);
	pm_persist(pm + 8 * calls);
	return ++calls;
}

long plugin_call(char *pm, long (*back)(char *, long))
{
	PUT(long, pm + 1024, 1);
	long r = back(pm, 5);
	PUT(long, pm + 1032, r);
	return r;
}
