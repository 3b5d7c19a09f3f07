/* What the programs of this suite share with those of targets/ops. */
#ifndef RARE_H
#define RARE_H
#include "../../ops/include/ops.h"
#endif
