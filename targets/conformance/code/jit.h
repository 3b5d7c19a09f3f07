/*
 * Writes tiny functions `int f(char *pm)` at run time: they store `value` at pm[offset] and return `result`.
 *
 * Like most generated code they come without call-frame information, so nobody but a stepper can tell who called them:
 * the programs that use them do not compare call paths.
 */
#include "pm.h"

typedef int (*generated)(char *);

static inline size_t emit(unsigned char *code, int offset, int value, int result)
{
	unsigned char *p = code;
	*p++ = 0xc7; *p++ = 0x87;                     /* mov dword ptr [rdi + offset], value */
	memcpy(p, &offset, 4); p += 4;
	memcpy(p, &value, 4); p += 4;
	*p++ = 0xb8;                                  /* mov eax, result */
	memcpy(p, &result, 4); p += 4;
	*p++ = 0xc3;                                  /* ret */
	return (size_t)(p - code);
}
