//@ build: c
//@ cflags: -O1 -mclwb -pthread -static
//@ needs: clwb
//@ rules: FP01 FP03
// Linked statically, the inner functions of the C library have their names.
#include "locks_repaired.c"
