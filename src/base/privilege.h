// privilege - the names of what a user may do, and sets of them as bits
// SPDX-License-Identifier: BSD-3-Clause
//
// One table (privilege.def) gives the enum, the bits and the names. Pure.
#ifndef HG_BASE_PRIVILEGE_H
#define HG_BASE_PRIVILEGE_H

#include <stdint.h>

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

#endif
