//@ build: c
//@ cflags: -O1
//@ pool: varies
//@ compare: lengths
//@ args: --loads
// As other_calls.c, where the pool cannot even be read at the program's address.
#include "other_calls.c"
