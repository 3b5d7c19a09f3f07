//@ explore: --bytes 12
/* A CRC-32 over the record, bit by bit. */
#include "solve.h"
int main(int argc, char **argv)
{
	struct pool *pool = pool_open(argv[1]);
	struct {
		unsigned char data[8];
		uint32_t crc;
	} record = {0};
	input(&record, sizeof record);
	uint32_t crc = ~0u;
	for (int i = 0; i < 8; i++) {
		crc ^= record.data[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (0xedb88320u & -(crc & 1));
	}
	if (~crc == record.crc) {
		PUT(pool->value[0], record.crc); //~ FP0101
		FLUSH_REPAIRED(pool->value[0]);
	}
	return argc - 2;
}
