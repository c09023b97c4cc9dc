// password - the form in which a password is derived: SASLprep, as SCRAM's clients do
// SPDX-License-Identifier: BSD-3-Clause
#include "app/password.h"

#include <gsasl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Such text needs no library, whose scratch memory nobody wipes. */
static bool is_plain(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (text[i] < ' ' || text[i] > '~')
            return false;
    return true;
}

char *hg_password_prepare(const void *password, size_t len, size_t *ret_len)
{
    char *copy = malloc(len + 1), *normal = NULL;
    if (copy == NULL)
        return NULL;
    if (len > 0)
        memcpy(copy, password, len);
    copy[len] = '\0';
    *ret_len = len;
    if (is_plain(copy, len) || memchr(copy, '\0', len) != NULL)
        return copy;
    if (gsasl_saslprep(copy, GSASL_ALLOW_UNASSIGNED, &normal, NULL) != GSASL_OK)
        return copy;
    hg_password_free(copy, len);
    *ret_len = strlen(normal);
    return normal;
}

void hg_password_free(char *password, size_t len)
{
    if (password == NULL)
        return;
    explicit_bzero(password, len);
    free(password);
}
