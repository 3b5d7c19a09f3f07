//@ build: c
//@ cflags: -O1
//@ pool: varies
//@ compare: lengths
//@ args: --loads
// As each_call.c, where the pool cannot even be read at the program's address.
#define QUEUE "each-loads"
#include "each_call.c"
