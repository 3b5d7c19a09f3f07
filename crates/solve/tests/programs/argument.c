/* A PM store for one word as the second argument. */
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	int fd = open(argv[1], O_RDWR | O_CREAT, 0600);
	if (fd < 0 || ftruncate(fd, 4096) || argc != 3)
		return 2;
	volatile uint64_t *pool = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	const char *word = argv[2];
	if (word[0] == 'f' && word[1] == 'i' && word[2] == 'v' && word[3] == 'e' && word[4] == 0)
		*pool = 5;
	return 0;
}
