/* Marks the operations of a program for Fencepost: see docs/operations.md.
 *
 * Each mark is one instruction that does nothing (nopl with a displacement of its own, 7 bytes): a program with marks runs as
 * well without Fencepost. Operations in marks do not nest; they are counted from 0 in the order in which they begin. */
#ifndef FENCEPOST_H
#define FENCEPOST_H

#if !defined(__x86_64__)
#define FENCEPOST_OPERATION_BEGIN() ((void)0)
#define FENCEPOST_OPERATION_END() ((void)0)
#else
/* "memory": no store may move out of its operation. The displacements spell "fpOB" and "fpOE". */
#define FENCEPOST_OPERATION_BEGIN() __asm__ volatile(".byte 0x0f, 0x1f, 0x80, 0x66, 0x70, 0x4f, 0x42" ::: "memory")
#define FENCEPOST_OPERATION_END() __asm__ volatile(".byte 0x0f, 0x1f, 0x80, 0x66, 0x70, 0x4f, 0x45" ::: "memory")
#endif

#endif
