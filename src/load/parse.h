// parse - the texts of options, turned into values
// SPDX-License-Identifier: BSD-3-Clause
//
// Each returns false when the text is not, whole, what it should be; nothing is written then. Pure,
// but for the file of hg_load_parse_password_file.
#ifndef HG_LOAD_PARSE_H
#define HG_LOAD_PARSE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "load/op.h"

/* Decimal digits only: no sign, no unit, no space. */
HG_MUST_USE bool hg_load_parse_number(const char *text, uint64_t min, uint64_t max,
                                      uint64_t *ret_number);

/* A decimal fraction, not negative. */
HG_MUST_USE bool hg_load_parse_real(const char *text, double min, double max, double *ret_number);

/* "N" or "N-M" with N <= M. */
HG_MUST_USE bool hg_load_parse_range(const char *text, uint64_t min, uint64_t max,
                                     uint32_t *ret_from, uint32_t *ret_to);

/* "get=90,set=10": each operation once, `,` or `/` between, `=` or `:` within; weights add up to
 * 1..max. */
HG_MUST_USE bool hg_load_parse_mix(const char *text, uint32_t max,
                                   uint32_t ret_weight[HG_LOAD_OPS]);

/* The name of one operation. */
HG_MUST_USE bool hg_load_parse_operation(const char *text, uint32_t *ret_op);

/* "xerror,json": a set of HG_LOAD_HELLO_*. */
HG_MUST_USE bool hg_load_parse_hello(const char *text, uint32_t *ret_features);

/* The first line of a file; the caller frees it. NULL with errno set, EINVAL when it is too long.
 */
HG_MUST_USE char *hg_load_parse_password_file(const char *path);

#endif
