/* A loop that computes: integer and floating-point work, few branches, no calls. argv[1]: millions of rounds. */
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	long rounds = (argc > 1 ? atol(argv[1]) : 100) * 1000000;
	unsigned x = 1;
	double sum = 0;
	static unsigned table[4096];
	for (long i = 0; i < rounds; i++) {
		x = x * 1664525u + 1013904223u;
		table[x >> 20] += x;
		sum += (double)(x & 0xffff) * 0.5;
	}
	printf("%u %g\n", table[17], sum);
	return 0;
}
