//@ explore: --bytes 32
//@ command: @@
/* A file that is mapped: a magic number, a version, and an offset into itself. */
#include "solve.h"
int main(int argc, char **argv)
{
	struct pool *pool = pool_open(argv[1]);
	int fd = open(argv[2], O_RDONLY);
	const unsigned char *file = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
	if (fd < 0 || file == MAP_FAILED)
		return 2;
	uint32_t magic, offset;
	memcpy(&magic, file, 4);
	memcpy(&offset, file + 8, 4);
	if (magic == 0x46504b56 && file[4] >= 3 && offset == 24 && file[24] == 0xa5) {
		PUT(pool->value[0], offset); //~ FP0101
		FLUSH_REPAIRED(pool->value[0]);
	}
	return argc - 3;
}
