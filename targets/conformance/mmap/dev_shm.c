//@ build: c
//@ cflags: -O1
//@ args: --pm *.pool
// Anonymous shared memory, memfd and SysV segments are written beside a pool and are none.
#include "pm.h"
#include <sys/shm.h>

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	char *pm = pm_create(argv[1], 4096);
	char *anonymous = pm_map_at(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int fd = memfd_create("scratch", MFD_CLOEXEC);
	CHECK(fd >= 0 && ftruncate(fd, 4096) == 0);
	char *memory = pm_map(fd, 4096);
	int id = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600);
	char *segment = id >= 0 ? (char *)shmat(id, NULL, 0) : anonymous;
	CHECK(segment != (char *)-1);
	if (id >= 0)
		shmctl(id, IPC_RMID, NULL);
	for (int i = 0; i < 3; i++) {
		PUT(int, anonymous + 4 * i, i);
		PUT(int, memory + 4 * i, i);
		PUT(int, segment + 64 + 4 * i, i);
		PUT(int, pm + 4 * i, i + 1);
	}
	return 0;
}
