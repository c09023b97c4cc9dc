// privilege - the names of what a user may do, and sets of them as bits
// SPDX-License-Identifier: BSD-3-Clause
//
// One table (privilege.def) gives the enum, the bits and the names. Pure.
#ifndef HG_BASE_PRIVILEGE_H
#define HG_BASE_PRIVILEGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/span.h"

enum hg_privilege {
#define HG_PRIVILEGE(id, name) HG_PRIVILEGE_##id,
#include "base/privilege.def"
#undef HG_PRIVILEGE
    HG_PRIVILEGE_COUNT
};

#define HG_PRIVILEGE_BIT(privilege) (UINT32_C(1) << (privilege))
#define HG_PRIVILEGES_ALL           (HG_PRIVILEGE_BIT(HG_PRIVILEGE_COUNT) - 1)

/* The name of a privilege, as it is written in users.yaml and in DropPrivilege. */
static inline const char *hg_privilege_name(enum hg_privilege privilege)
{
    static const char *const names[] = {
#define HG_PRIVILEGE(id, name) name,
#include "base/privilege.def"
#undef HG_PRIVILEGE
    };
    return privilege < HG_PRIVILEGE_COUNT ? names[privilege] : "?";
}

/* Finds a privilege by its exact name. False, and nothing written, when there is none. */
static inline bool hg_privilege_parse(struct hg_span name, enum hg_privilege *ret_privilege)
{
    for (int p = 0; p < HG_PRIVILEGE_COUNT; p++) {
        if (hg_span_is(name, hg_privilege_name((enum hg_privilege)p))) {
            *ret_privilege = (enum hg_privilege)p;
            return true;
        }
    }
    return false;
}

/* Are all of `needed` among those held? */
static inline bool hg_privileges_hold(uint32_t held, uint32_t needed)
{
    return (needed & ~held) == 0;
}

#endif
