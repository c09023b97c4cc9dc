// password - the form in which a password is derived: SASLprep, as SCRAM's clients do
// SPDX-License-Identifier: BSD-3-Clause
//
// RFC 5802 derives from the normalised password (RFC 4013), so that a letter typed in two ways is
// one password. What cannot be normalised (bytes that are no UTF-8, forbidden characters) is taken
// as it is; printable ASCII is its own normal form. No state; any thread.
#ifndef HG_APP_PASSWORD_H
#define HG_APP_PASSWORD_H

#include <stddef.h>

#include "base/attr.h"

/* A copy of the password in that form, with a zero byte behind it; NULL when memory is out. */
HG_MUST_USE char *hg_password_prepare(const void *password, size_t len, size_t *ret_len);
/* Wipes and frees it; NULL is allowed. */
void hg_password_free(char *password, size_t len);

#endif
