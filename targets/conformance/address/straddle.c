//@ build: c
//@ cflags: -O1
//@ refuses: lies partly in a pool and partly outside
// A store that begins in ordinary memory and ends in a pool: only its second part is PM. And the other way round.
#include "pm.h"

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	char *room = pm_map_at(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd = pm_file(argv[1], 4096);
	char *pm = pm_map_at(room + 4096, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
	PUT(long, pm - 3, 0x1122334455667788);
	PUT(int, pm + 4094, 0x55667788);
	CHECK(pm[0] == 0x55 && pm[4] == 0x11 && room[4095] == 0x66 && room[8192] == 0x66);
	return 0;
}
