/*
 * An append-only log in persistent memory, for the tutorial.
 *
 *   log POOL append TEXT... | verify
 *
 * An entry counts as soon as `count` says so. The bug: nothing orders the entry before the count. -DREPAIRED is the cure.
 */
#include <fcntl.h>
#include <immintrin.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* One cache line. */
struct entry {
	uint64_t sum;
	char text[56];
};

struct log {
	uint64_t count;
	uint64_t unused[7];
	struct entry entries[63];
};

static struct log *log_;

static uint64_t sum(const char *text)
{
	uint64_t sum = 5381;
	for (; *text; text++)
		sum = sum * 33 + (unsigned char)*text;
	return sum;
}

/* Makes the line durable. */
static void persist(const void *line)
{
	_mm_clflush(line);
	_mm_sfence();
}

static void append(const char *text)
{
	struct entry *entry = &log_->entries[log_->count];
	strncpy(entry->text, text, sizeof entry->text - 1);
	entry->sum = sum(entry->text);
#ifdef REPAIRED
	persist(entry);
	log_->count++;
#else
	log_->count++;
	persist(entry);
#endif
	persist(&log_->count);
}

static int verify(void)
{
	for (uint64_t i = 0; i < log_->count; i++)
		if (log_->entries[i].sum != sum(log_->entries[i].text)) {
			fprintf(stderr, "entry %lu is damaged\n", (unsigned long)i);
			return 1;
		}
	printf("%lu entries\n", (unsigned long)log_->count);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	int fd = open(argv[1], O_RDWR | O_CREAT, 0644);
	if (fd < 0 || ftruncate(fd, sizeof *log_) != 0) {
		perror(argv[1]);
		return 2;
	}
	log_ = mmap(NULL, sizeof *log_, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (log_ == MAP_FAILED) {
		perror("mmap");
		return 2;
	}
	if (strcmp(argv[2], "verify") == 0)
		return verify();
	for (int i = 3; i < argc; i++)
		append(argv[i]);
	return 0;
}
