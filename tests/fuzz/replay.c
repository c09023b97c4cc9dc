// replay - feeds each file of a corpus to a fuzz target, as one test of `make check`
// SPDX-License-Identifier: BSD-3-Clause
//
// replay_TARGET [FILE or FOLDER]...; without arguments the corpus of the target, which is known
// from the program's name: tests/fuzz/corpus/TARGET under $top_srcdir.
#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fuzz.h"

#define FILE_MAX (1u << 20)

static unsigned tests;
static unsigned failures;

// Files are named without the folder they were found in: the plan is the same on every machine.
static void report(bool ok, const char *name, const char *why)
{
    printf("%sok %u - %s%s\n", ok ? "" : "not ", ++tests, name, why);
    fflush(stdout); // a target that aborts must leave behind what was fed to it before
    failures += !ok;
}

static void replay_file(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    FILE *file = fopen(path, "rb");
    uint8_t *bytes = malloc(FILE_MAX);
    if (!file || !bytes) {
        report(false, name, ": cannot be read");
    } else {
        size_t size = fread(bytes, 1, FILE_MAX, file);
        // Memory of exactly that size, so that a read past it is found.
        uint8_t *exact = malloc(size ? size : 1);
        if (exact)
            memcpy(exact, bytes, size);
        fprintf(stderr, "# %s\n", name);
        report(exact && LLVMFuzzerTestOneInput(exact, size) == 0, name, "");
        free(exact);
    }
    free(bytes);
    if (file)
        fclose(file);
}

static int no_dots(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static void replay_path(const char *path)
{
    struct stat status;
    struct dirent **entries;
    if (stat(path, &status) != 0) {
        report(false, path, ": is not there");
        return;
    }
    if (!S_ISDIR(status.st_mode)) {
        replay_file(path);
        return;
    }
    int count = scandir(path, &entries, no_dots, alphasort);
    if (count <= 0) {
        report(false, path, ": is an empty corpus");
        return;
    }
    for (int i = 0; i < count; i++) {
        char full[4096];
        snprintf(full, sizeof full, "%s/%s", path, entries[i]->d_name);
        replay_file(full);
        free(entries[i]);
    }
    free(entries);
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        replay_path(argv[i]);
    if (argc <= 1) {
        const char *top = getenv("top_srcdir");
        const char *target = strstr(argv[0], "replay_");
        char corpus[4096];
        snprintf(corpus, sizeof corpus, "%s/tests/fuzz/corpus/%s", top ? top : ".",
                 target ? target + strlen("replay_") : "");
        replay_path(corpus);
    }
    printf("1..%u\n", tests);
    return failures > 0;
}
