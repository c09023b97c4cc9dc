// confdump - prints what the option table says, for the tests that hold sample and manual to it
// SPDX-License-Identifier: BSD-3-Clause
//
// confdump describe | sample | manual          the table in its three forms
// confdump check FILE                          what hg_conf_load says of a file; 1 if it refuses it
#include <stdio.h>
#include <string.h>

#include "app/conf.h"

static int check(const char *path)
{
    struct hg_conf_errors errs;
    struct hg_conf *conf = NULL;
    hg_conf_errors_init(&errs);
    int rc = hg_conf_load(path, NULL, &conf, &errs);
    hg_conf_errors_print(&errs, stdout);
    hg_conf_errors_fini(&errs);
    hg_conf_free(conf);
    return rc ? 1 : 0;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "check") == 0)
        return check(argv[2]);
    if (argc == 2 && strcmp(argv[1], "describe") == 0)
        hg_conf_describe(stdout);
    else if (argc == 2 && strcmp(argv[1], "sample") == 0)
        hg_conf_sample(stdout);
    else if (argc == 2 && strcmp(argv[1], "manual") == 0)
        hg_conf_manual(stdout);
    else {
        fputs("usage: confdump describe | sample | manual | check FILE\n", stderr);
        return 2;
    }
    return fflush(stdout) == 0 ? 0 : 1;
}
