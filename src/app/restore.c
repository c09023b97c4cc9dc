// restore - headgate --restore: starts an embedded store from a backup
// SPDX-License-Identifier: BSD-3-Clause
#include "app/restore.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "back/embedded_install.h"

static void list_embedded(const struct hg_conf *conf)
{
    const char *between = "";
    for (size_t i = 0; i < conf->upstreams_count; i++)
        if (conf->upstreams[i].kind == HG_CONF_KIND_EMBEDDED) {
            fprintf(stderr, "%s%s", between, conf->upstreams[i].name);
            between = ", ";
        }
    fputs(between[0] != '\0' ? ")\n" : "none is embedded)\n", stderr);
}

/* The upstream to restore, or NULL, and why has been said. */
static const struct hg_conf_upstream *find(const struct hg_conf *conf, const char *name)
{
    const struct hg_conf_upstream *found = NULL;
    unsigned embedded = 0;
    for (size_t i = 0; i < conf->upstreams_count; i++) {
        const struct hg_conf_upstream *at = &conf->upstreams[i];
        bool is_embedded = at->kind == HG_CONF_KIND_EMBEDDED;
        embedded += is_embedded;
        if (is_embedded && (name == NULL || strcmp(name, at->name) == 0))
            found = at;
    }
    if (found != NULL && (name != NULL || embedded == 1))
        return found;
    if (name != NULL)
        fprintf(stderr, "headgate: no embedded upstream '%s' (accepted: ", name);
    else if (embedded > 1)
        fputs("headgate: several upstreams are embedded: use --upstream (accepted: ", stderr);
    else
        fputs("headgate: nothing to restore to (accepted: ", stderr);
    list_embedded(conf);
    return NULL;
}

static int restore_to(const struct hg_conf *conf, const struct hg_conf_upstream *upstream,
                      const struct hg_restore *restore)
{
    struct hg_embedded_found found;
    char error[4600];
    if (hg_embedded_install(conf->data_dir, upstream->name, restore->from, restore->force, &found,
                            error, sizeof error) != 0) {
        fprintf(stderr, "headgate: %s\n", error);
        return EXIT_FAILURE;
    }
    if (found.used_bytes > upstream->embedded_max_bytes)
        fprintf(stderr,
                "headgate: warning: the store takes %" PRIu64 " bytes, embedded_max_bytes of "
                "upstream '%s' is %" PRIu64 "\n",
                found.used_bytes, upstream->name, upstream->embedded_max_bytes);
    printf("%s/%s.mdb: restored from '%s': format version %u, %" PRIu64 " tenants, %" PRIu64
           " items, %" PRIu64 " bytes in them\n",
           conf->data_dir, upstream->name, restore->from, found.format, found.tenants, found.items,
           found.item_bytes);
    return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int hg_restore_run(const char *conf_path, const struct hg_conf_overrides *overrides,
                   const struct hg_restore *restore)
{
    struct hg_conf *conf = NULL;
    struct hg_conf_errors errs;
    int status = EXIT_FAILURE;
    hg_conf_errors_init(&errs);
    int rc = hg_conf_load(conf_path, overrides, &conf, &errs);
    hg_conf_errors_print(&errs, stderr);
    if (rc == 0) {
        const struct hg_conf_upstream *upstream = find(conf, restore->upstream);
        if (upstream != NULL)
            status = restore_to(conf, upstream, restore);
    }
    hg_conf_errors_fini(&errs);
    hg_conf_free(conf);
    return status;
}
