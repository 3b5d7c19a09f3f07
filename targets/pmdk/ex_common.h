/* The few lines that the libpmemobj examples expect in ex_common.h, which the package does not ship. */
#ifndef EX_COMMON_H
#define EX_COMMON_H

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

#include <libpmemobj.h>

#define CREATE_MODE_RW (S_IWUSR | S_IRUSR)

#ifndef MIN
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#endif

/* 0 if the file is there. */
static inline int file_exists(const char *path) { return access(path, F_OK); }

/* Number of the highest bit that is set; -1 if none is. */
static inline int find_last_set_64(uint64_t value) { return value == 0 ? -1 : 63 - __builtin_clzll(value); }

/*
 * mapcli stores OID_NULL as every value, and ctree_map_insert_leaf asks for the type of such a value: libpmemobj
 * then reads through a null pointer. With this guard a null value is what it is, a leaf.
 */
#undef OID_INSTANCEOF
#define OID_INSTANCEOF(o, type) (!OID_IS_NULL(o) && TOID_TYPE_NUM(type) == pmemobj_type_num(o))

#endif
