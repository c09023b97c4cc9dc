// users_parse - reading users.yaml
// SPDX-License-Identifier: BSD-3-Clause
//
// Like conf_parse: a fault is noted, and reading goes on. A message never shows a part of a secret.
#include "app/conf_build.h"
#include "app/users_build.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "app/conf_table.h"
#include "app/file.h"
#include "app/yamldoc.h"

#define FILE_MAX_BYTES (16u << 20)

struct walk {
    struct hg_yamldoc doc;
    const char *file;
    struct hg_conf_errors *errs;
    struct hg_users *users;
    int rc; /* the worst so far: 0, -EINVAL, -ENOMEM */
};

#define FAULT(walk, line, ...)                                                                     \
    do {                                                                                           \
        hg_conf_errors_add((walk)->errs, (walk)->file, line, __VA_ARGS__);                         \
        if ((walk)->rc == 0)                                                                       \
            (walk)->rc = -EINVAL;                                                                  \
    } while (0)

static bool is(struct walk *walk, const yaml_node_t *node, yaml_node_type_t type,
               const char *subject, const char *accepts)
{
    if (hg_yamldoc_is(&walk->doc, node, type, subject, accepts, walk->errs))
        return true;
    walk->rc = walk->rc ? walk->rc : -EINVAL;
    return false;
}

static const char *text_of(struct walk *walk, const yaml_node_t *node, const char *subject)
{
    const char *text = hg_yamldoc_text(&walk->doc, node, subject, walk->errs);
    if (!text)
        walk->rc = walk->rc ? walk->rc : -EINVAL;
    return text;
}

static char *copy(struct walk *walk, const char *text)
{
    char *mine = strdup(text);
    if (!mine)
        walk->rc = -ENOMEM;
    return mine;
}

static uint32_t privilege_bits(const char *name)
{
    if (strcmp(name, "all") == 0)
        return HG_PRIVILEGES_ALL;
    for (unsigned i = 0; i < HG_PRIVILEGE_COUNT; i++)
        if (strcmp(name, hg_privilege_name((enum hg_privilege)i)) == 0)
            return HG_PRIVILEGE_BIT(i);
    return 0;
}

static uint32_t parse_privileges(struct walk *walk, const yaml_node_t *node)
{
    static const char accepts[] =
#define HG_PRIVILEGE(id, name) name ", "
#include "base/privilege.def"
#undef HG_PRIVILEGE
        "all";
    uint32_t set = 0;
    if (!is(walk, node, YAML_SEQUENCE_NODE, "privileges", "a list"))
        return 0;
    for (yaml_node_item_t *item = node->data.sequence.items.start;
         item < node->data.sequence.items.top; item++) {
        const yaml_node_t *each = hg_yamldoc_node(&walk->doc, *item);
        const char *name = text_of(walk, each, "privilege");
        uint32_t bits = name ? privilege_bits(name) : 0;
        if (name && !bits)
            FAULT(walk, hg_yamldoc_line(each), "unknown privilege '%.80s' (accepted: %s)", name,
                  accepts);
        set |= bits;
    }
    return set;
}

static void parse_secrets(struct walk *walk, const yaml_node_t *node, struct hg_user *user)
{
    if (!is(walk, node, YAML_SEQUENCE_NODE, "secrets", "a list"))
        return;
    for (yaml_node_item_t *item = node->data.sequence.items.start;
         item < node->data.sequence.items.top; item++) {
        const yaml_node_t *each = hg_yamldoc_node(&walk->doc, *item);
        const char *text = text_of(walk, each, "secret"), *why;
        struct hg_secret secret;
        if (!text)
            continue;
        if (hg_secret_decode(text, strlen(text), &secret, &why) != 0) {
            FAULT(walk, hg_yamldoc_line(each), "%s", why);
            continue;
        }
        if (user->has_secret[secret.hash])
            FAULT(walk, hg_yamldoc_line(each),
                  "second secret of kind '%s' (accepted: one of each kind)",
                  hg_secret_hash_name(secret.hash));
        user->secrets[secret.hash] = secret;
        user->has_secret[secret.hash] = true;
    }
}

static int compare_buckets(const void *a, const void *b)
{
    const struct hg_user_bucket *left = a, *right = b;
    return hg_users_compare(hg_span_str(left->name), hg_span_str(right->name));
}

static void parse_buckets(struct walk *walk, const yaml_node_t *node, struct hg_user *user)
{
    if (!is(walk, node, YAML_MAPPING_NODE, "buckets", "a mapping of bucket names to lists"))
        return;
    yaml_node_pair_t *pair = node->data.mapping.pairs.start, *end = node->data.mapping.pairs.top;
    user->buckets = calloc((size_t)(end - pair) + 1, sizeof *user->buckets);
    if (!user->buckets) {
        walk->rc = -ENOMEM;
        return;
    }
    for (; pair < end && walk->rc != -ENOMEM; pair++) {
        const char *name = hg_yamldoc_key(&walk->doc, pair);
        uint32_t set = parse_privileges(walk, hg_yamldoc_node(&walk->doc, pair->value));
        if (strcmp(name, "*") == 0) {
            user->any_bucket_privileges = set;
            continue;
        }
        if (!hg_conf_name_ok(name, strlen(name))) {
            FAULT(walk, hg_yamldoc_line(hg_yamldoc_node(&walk->doc, pair->key)),
                  "bad bucket name '%.80s' (accepted: \"*\", or 1 to 100 of A-Z a-z 0-9 . _ %% -)",
                  name);
            continue;
        }
        char *mine = copy(walk, name);
        if (mine)
            user->buckets[user->bucket_count++] = (struct hg_user_bucket){mine, set};
    }
    qsort(user->buckets, user->bucket_count, sizeof *user->buckets, compare_buckets);
}

static void parse_user_name(struct walk *walk, const yaml_node_t *node, struct hg_user *user)
{
    const char *name = text_of(walk, node, "name");
    if (!name)
        return;
    if (strlen(name) < 1 || strlen(name) > HG_USERS_NAME_MAX)
        FAULT(walk, hg_yamldoc_line(node),
              "bad length of user name '%.80s' (accepted: 1 to %u bytes)", name, HG_USERS_NAME_MAX);
    else
        user->name = copy(walk, name);
}

static void parse_user(struct walk *walk, const yaml_node_t *node, struct hg_user *user)
{
    bool named = false;
    if (!is(walk, node, YAML_MAPPING_NODE, "user", "a mapping"))
        return;
    user->line = hg_yamldoc_line(node);
    for (yaml_node_pair_t *pair = node->data.mapping.pairs.start;
         pair < node->data.mapping.pairs.top && walk->rc != -ENOMEM; pair++) {
        const char *key = hg_yamldoc_key(&walk->doc, pair);
        const yaml_node_t *value = hg_yamldoc_node(&walk->doc, pair->value);
        if (strcmp(key, "name") == 0) {
            named = true;
            parse_user_name(walk, value, user);
        } else if (strcmp(key, "secrets") == 0) {
            parse_secrets(walk, value, user);
        } else if (strcmp(key, "buckets") == 0) {
            parse_buckets(walk, value, user);
        } else if (strcmp(key, "privileges") == 0) {
            user->privileges = parse_privileges(walk, value);
        } else if (key[0]) {
            FAULT(walk, hg_yamldoc_line(hg_yamldoc_node(&walk->doc, pair->key)),
                  "unknown option '%.80s' of a user (accepted: name, secrets, buckets, privileges)",
                  key);
        }
    }
    if (!named)
        FAULT(walk, user->line, "user without 'name' (accepted: 1 to %u bytes)", HG_USERS_NAME_MAX);
}

static int compare_users(const void *a, const void *b)
{
    const struct hg_user *left = a, *right = b;
    int order = hg_users_compare(hg_span_str(left->name), hg_span_str(right->name));
    return order ? order : (left->line > right->line) - (left->line < right->line);
}

static void parse_users(struct walk *walk, const yaml_node_t *node)
{
    struct hg_users *users = walk->users;
    if (!is(walk, node, YAML_SEQUENCE_NODE, "users", "a list"))
        return;
    yaml_node_item_t *item = node->data.sequence.items.start, *end = node->data.sequence.items.top;
    users->users = calloc((size_t)(end - item) + 1, sizeof *users->users);
    if (!users->users) {
        walk->rc = -ENOMEM;
        return;
    }
    for (; item < end && walk->rc != -ENOMEM; item++)
        parse_user(walk, hg_yamldoc_node(&walk->doc, *item), &users->users[users->count++]);
    if (walk->rc)
        return;
    qsort(users->users, users->count, sizeof *users->users, compare_users);
    for (size_t i = 1; i < users->count; i++)
        if (strcmp(users->users[i - 1].name, users->users[i].name) == 0)
            FAULT(walk, users->users[i].line,
                  "repeated user '%.80s' (accepted: once, and it is in line %u)",
                  users->users[i].name, users->users[i - 1].line);
}

static void parse_anonymous(struct walk *walk, const yaml_node_t *node)
{
    struct hg_users *users = walk->users;
    const char *bucket = NULL;
    if (!is(walk, node, YAML_MAPPING_NODE, "anonymous", "a mapping"))
        return;
    for (yaml_node_pair_t *pair = node->data.mapping.pairs.start;
         pair < node->data.mapping.pairs.top; pair++) {
        const char *key = hg_yamldoc_key(&walk->doc, pair);
        const yaml_node_t *value = hg_yamldoc_node(&walk->doc, pair->value);
        if (strcmp(key, "bucket") == 0) {
            bucket = text_of(walk, value, "bucket");
            if (bucket && !hg_conf_name_ok(bucket, strlen(bucket)))
                FAULT(walk, hg_yamldoc_line(value),
                      "bad bucket name '%.80s' (accepted: 1 to 100 of A-Z a-z 0-9 . _ %% -)",
                      bucket);
        } else if (strcmp(key, "privileges") == 0) {
            users->anonymous_privileges = parse_privileges(walk, value);
        } else if (key[0]) {
            FAULT(walk, hg_yamldoc_line(hg_yamldoc_node(&walk->doc, pair->key)),
                  "unknown option '%.80s' of anonymous (accepted: bucket, privileges)", key);
        }
    }
    users->anonymous_bucket = copy(walk, bucket ? bucket : "default");
}

/* The iteration count and the salt's length that most secrets of a hash have. */
static void find_usual(struct hg_users *users)
{
    for (int hash = 0; hash < HG_SECRET_HASH_COUNT; hash++) {
        struct candidate {
            struct hg_users_usual usual;
            size_t votes;
        } candidates[16] = {{{0, 0}, 0}}; /* more kinds than that have no usual one */
        size_t used = 0, best = 0;
        for (size_t i = 0; i < users->count; i++) {
            const struct hg_secret *secret =
                hg_user_secret(&users->users[i], (enum hg_secret_hash)hash);
            size_t j = 0;
            if (!secret)
                continue;
            while (j < used && (candidates[j].usual.iterations != secret->iterations ||
                                candidates[j].usual.salt_len != secret->salt_len))
                j++;
            if (j == used && used < HG_COUNT_OF(candidates))
                candidates[used++].usual =
                    (struct hg_users_usual){secret->iterations, secret->salt_len};
            if (j < used)
                candidates[j].votes++;
        }
        for (size_t j = 1; j < used; j++)
            if (candidates[j].votes > candidates[best].votes)
                best = j;
        users->usual[hash] = candidates[best].usual;
    }
}

static void parse_root(struct walk *walk, const yaml_node_t *root)
{
    if (!is(walk, root, YAML_MAPPING_NODE, "the file", "a mapping of users and anonymous"))
        return;
    for (yaml_node_pair_t *pair = root->data.mapping.pairs.start;
         pair < root->data.mapping.pairs.top && walk->rc != -ENOMEM; pair++) {
        const char *key = hg_yamldoc_key(&walk->doc, pair);
        const yaml_node_t *value = hg_yamldoc_node(&walk->doc, pair->value);
        if (strcmp(key, "users") == 0)
            parse_users(walk, value);
        else if (strcmp(key, "anonymous") == 0)
            parse_anonymous(walk, value);
        else if (key[0])
            FAULT(walk, hg_yamldoc_line(hg_yamldoc_node(&walk->doc, pair->key)),
                  "unknown option '%.80s' (accepted: users, anonymous)", key);
    }
}

int hg_users_parse(const char *text, size_t len, const char *name, struct hg_users **ret,
                   struct hg_conf_errors *errs)
{
    struct walk walk = {.file = name, .errs = errs, .users = hg_users_new()};
    if (!walk.users) {
        hg_conf_errors_add(errs, name, 0, "out of memory");
        return -ENOMEM;
    }
    walk.rc = hg_yamldoc_init(&walk.doc, text, len, name, errs);
    if (walk.rc) {
        hg_users_free(walk.users);
        return walk.rc;
    }
    const yaml_node_t *root = hg_yamldoc_root(&walk.doc);
    if (walk.doc.faulty)
        walk.rc = -EINVAL; /* with a key repeated, whose value would it be? */
    else if (root)
        parse_root(&walk, root);
    if (!walk.rc && !walk.users->count && !walk.users->anonymous_bucket)
        FAULT(&walk, 0, "nobody could do anything (accepted: users, anonymous, or both)");
    if (walk.rc == -ENOMEM)
        hg_conf_errors_add(errs, name, 0, "out of memory");
    hg_yamldoc_fini(&walk.doc);
    if (walk.rc) {
        hg_users_free(walk.users);
        return walk.rc;
    }
    find_usual(walk.users);
    *ret = walk.users;
    return 0;
}

int hg_users_load(const char *path, const char *file, unsigned line, struct hg_users **ret,
                  struct hg_conf_errors *errs)
{
    char *text;
    size_t len;
    int rc = hg_file_read(path, FILE_MAX_BYTES, &text, &len);
    if (rc) {
        hg_conf_errors_add(errs, file, line, "cannot read users_file '%s': %s", path,
                           strerror(-rc));
        return rc;
    }
    rc = hg_users_parse(text, len, path, ret, errs);
    explicit_bzero(text, len);
    free(text);
    return rc;
}

int hg_users_load_for(const struct hg_conf *conf, struct hg_users **ret,
                      struct hg_conf_errors *errs)
{
    unsigned line = conf->lines[HG_CONF_SERVER_users_file];
    if (conf->users_file[0] == '\0')
        return hg_users_open(ret);
    return hg_users_load(conf->users_file, hg_conf_place(conf, line), line, ret, errs);
}
