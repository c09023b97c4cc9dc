// webfiles - what is served when no dashboard is built in: a page that names the other paths
// SPDX-License-Identifier: BSD-3-Clause
#include "app/webfiles.h"

static const unsigned char page[] =
    "<!DOCTYPE html>\n"
    "<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Headgate</title></head><body>\n"
    "<h1>Headgate</h1>\n"
    "<ul>\n"
    "<li><a href=\"/metrics\">/metrics</a></li>\n"
    "<li><a href=\"/healthz\">/healthz</a></li>\n"
    "<li><a href=\"/readyz\">/readyz</a></li>\n"
    "<li><a href=\"/api/status.json\">/api/status.json</a></li>\n"
    "<li><a href=\"/api/tenants.json\">/api/tenants.json</a></li>\n"
    "<li><a href=\"/api/hotkeys.json\">/api/hotkeys.json</a></li>\n"
    "<li><a href=\"/api/upstreams.json\">/api/upstreams.json</a></li>\n"
    "<li><a href=\"/api/slow.json\">/api/slow.json</a></li>\n"
    "<li><a href=\"/api/history.json\">/api/history.json</a></li>\n"
    "</ul>\n"
    "</body></html>\n";

const struct hg_web_file hg_web_files[] = {
    {"/", "text/html; charset=utf-8", page, sizeof page - 1},
};
const size_t hg_web_file_count = sizeof hg_web_files / sizeof hg_web_files[0];
