/* The frame around the assembly programs: a pool of 64 KiB, whose address goes to body(). */
#include "pm.h"

long body(char *pm);

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	char *pm = pm_create(argv[1], 65536);
	return (int)body(pm);
}
