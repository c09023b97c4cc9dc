// conf - the configuration file, checked, as one tree that never changes
// SPDX-License-Identifier: BSD-3-Clause
//
// conf.def has one row for each option; the fields below are made from it, under the options'
// names. A struct hg_conf is built by hg_conf_load / hg_conf_parse (or by hg_state_apply, which
// merges what was set by opcode), is immutable from then on, may be read by any thread, and is
// freed as a whole.
#ifndef HG_APP_CONF_H
#define HG_APP_CONF_H

#include <stdio.h>

#include "app/conf_errors.h"
#include "app/conf_fields.h"
#include "base/attr.h"

/* What the command line says; it wins over the file. Zero = nothing. */
struct hg_conf_overrides {
    const char *const *listen; /* replaces the listeners of the file */
    size_t listen_count;
    const char *data_dir; /* or NULL */
    const char *threads;  /* or NULL; text, checked like the file's */
    const char *admin;    /* or NULL; address of HTTP */
    bool insecure;        /* listeners beyond loopback without a users file are only warned of */
};

/* Reads and checks a file (path NULL: the defaults). 0, or -errno with at least one line in errs
   (-EINVAL for faults of the text); warnings may be there in both cases. overrides may be NULL. */
HG_MUST_USE int hg_conf_load(const char *path, const struct hg_conf_overrides *overrides,
                             struct hg_conf **ret, struct hg_conf_errors *errs);
/* The same for text in memory; name stands for the file in messages. Files with passwords, which it
   names, are not read. */
HG_MUST_USE int hg_conf_parse(const char *text, size_t len, const char *name,
                              const struct hg_conf_overrides *overrides, struct hg_conf **ret,
                              struct hg_conf_errors *errs);
void hg_conf_free(struct hg_conf *conf);
/* A deep copy, NULL when memory is out. */
struct hg_conf *hg_conf_clone(const struct hg_conf *conf);

/* The tenant of that name, or NULL. */
const struct hg_conf_tenant *hg_conf_tenant_find(const struct hg_conf *conf, const char *name,
                                                 size_t len);
/* Index of the upstream, or HG_CONF_NO_UPSTREAM. */
size_t hg_conf_upstream_find(const struct hg_conf *conf, const char *name);

/* The name of a choice in the file: hg_conf_sync_name(HG_CONF_SYNC_NEVER) is "never". */
#define HG_CONF_DECLARE_NAME(type, tag, VALUES) const char *tag##_name(enum tag value);
HG_CONF_CHOICES(HG_CONF_DECLARE_NAME)
#undef HG_CONF_DECLARE_NAME

/* What compat_overload comes to: a line for each upstream with the options that it gives other
   defaults, as they are in force, and the lines of those that the file gives. Nothing with none. */
void hg_conf_compat_print(const struct hg_conf *conf, FILE *to);

/* --describe-config: every option with type, range, default, unit, run-time yes or no, sentence. */
void hg_conf_describe(FILE *to);
/* The sample etc/headgate.yaml. */
void hg_conf_sample(FILE *to);
/* The option list of the manual (Markdown tables). */
void hg_conf_manual(FILE *to);

/* One difference. path is `threads`, `tenant.shop.reserved`, `upstream.cache.servers`,
   `tenant.shop` (came or went: before or after is NULL). Texts are as in the file, and last until
   the callback returns. */
struct hg_conf_change {
    const char *path;
    const char *before;
    const char *after;
    bool at_run_time; /* false: only a new start makes it take effect */
};
typedef void hg_conf_change_fn(void *ctx, const struct hg_conf_change *change);

/* Calls fn for each option that differs; the number of those that cannot change at run time. */
size_t hg_conf_diff(const struct hg_conf *before, const struct hg_conf *after,
                    hg_conf_change_fn *fn, void *ctx);

/* Every option as it is: path as above, value as in the file. Texts last until fn returns. */
typedef void hg_conf_list_fn(void *ctx, const char *path, const char *value);
void hg_conf_list(const struct hg_conf *conf, hg_conf_list_fn *fn, void *ctx);

#endif
