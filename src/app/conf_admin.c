// conf_admin - the rules about HTTP: where it is served, and who may read
// SPDX-License-Identifier: BSD-3-Clause
#include "app/conf_build.h"

#include <inttypes.h>
#include <string.h>

#define TOKEN_MIN 8 /* bytes: a guess or two a second for each connection must not find it */

#define ERROR HG_CONF_ERROR

/* Can it stand in a header as it is? */
static bool is_sayable(const char *token)
{
    for (; *token; token++)
        if (*token <= ' ' || *token > '~')
            return false;
    return true;
}

static void check_token(const struct hg_conf *conf, const struct hg_conf_admin *admin,
                        struct hg_conf_errors *errs)
{
    unsigned at = admin->lines[HG_CONF_ADMIN_token];
    if (!at)
        at = admin->lines[HG_CONF_ADMIN_token_file];
    if (admin->token_file[0] && admin->lines[HG_CONF_ADMIN_token])
        ERROR(conf, admin->lines[HG_CONF_ADMIN_token_file],
              "'token_file' given beside 'token' (accepted: one of them)");
    if (admin->token[0] && (strlen(admin->token) < TOKEN_MIN || !is_sayable(admin->token)))
        ERROR(conf, at,
              "the token of admin is too short, or has blanks or bytes that no header takes "
              "(accepted: %d to %" PRIu64 " printable ASCII characters)",
              TOKEN_MIN, hg_conf_scopes[HG_CONF_SCOPE_ADMIN].options[HG_CONF_ADMIN_token].max);
}

void hg_conf_check_admin(const struct hg_conf *conf, struct hg_conf_errors *errs)
{
    if (!conf->admin_count)
        return;
    const struct hg_conf_admin *admin = &conf->admin[0];
    unsigned line = admin->lines[HG_CONF_ADMIN_address];
    check_token(conf, admin, errs);
    if (admin->address.is_unix)
        ERROR(conf, line, "admin address '%s' is a unix socket (accepted: HOST:PORT)",
              admin->address.text);
    else if (!hg_conf_address_is_local(&admin->address) && !admin->token[0] &&
             !admin->token_file[0])
        ERROR(conf, line,
              "admin address '%s' would show keys to everybody (accepted: a token or token_file "
              "beside it, or loopback)",
              admin->address.text);
}
