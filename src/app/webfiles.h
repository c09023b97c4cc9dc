// webfiles - the files of the dashboard, built into the program
// SPDX-License-Identifier: BSD-3-Clause
//
// `path` is what is asked for over HTTP ("/", "/app.js"), `type` goes into Content-Type. Who has no
// token gets them too: they hold nothing that is not public, and the page has to ask for it.
#ifndef HG_APP_WEBFILES_H
#define HG_APP_WEBFILES_H

#include <stddef.h>

struct hg_web_file {
    const char *path, *type;
    const unsigned char *data;
    size_t len;
};

extern const struct hg_web_file hg_web_files[];
extern const size_t hg_web_file_count;

#endif
