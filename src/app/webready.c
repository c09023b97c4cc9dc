// webready - whether the process should be given clients, and if not, why
// SPDX-License-Identifier: BSD-3-Clause
#include "app/upstreams_view.h"
#include "app/web_own.h"

static void reason(struct hg_webtext *lines, const char *text)
{
    hg_webtext_str(lines, text);
    hg_webtext_str(lines, "\n");
}

bool hg_web_is_ready(struct hg_web *web, const struct hg_web_view *view, struct hg_webtext *lines)
{
    bool ready = true;
    if (atomic_load(&web->process->draining)) {
        reason(lines, "draining");
        ready = false;
    }
    for (size_t i = 0; i < view->directory->bucket_count; i++) {
        const struct hg_bucket *bucket = view->directory->buckets[i];
        if (!atomic_load(&((struct hg_bucket *)(uintptr_t)bucket)->required) ||
            bucket->upstream == NULL || hg_upstream_is_alive(view->directory, bucket->upstream))
            continue;
        hg_webtext_str(lines, "upstream '");
        hg_webtext_str(lines, bucket->upstream->name);
        hg_webtext_str(lines, "' of required tenant '");
        hg_webtext_str(lines, bucket->name);
        reason(lines, "' is down");
        ready = false;
    }
    return ready;
}
