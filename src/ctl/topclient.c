// topclient - the page of connections of top
// SPDX-License-Identifier: BSD-3-Clause
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/toppage.h"

enum {
    C_PEER,
    C_TENANT,
    C_USER,
    C_RATE,
    C_REQUESTS,
    C_IDLE,
    C_AGE,
    C_QUEUE,
    C_OUT,
    C_WAIT,
    C_AGENT,
    C_COUNT
};

_Static_assert((int)C_COUNT == (int)HG_TOP_CLIENT_COLUMNS &&
                   (int)C_RATE == (int)HG_TOP_CLIENT_ORDER,
               "as toppage.h says");

const struct hg_top_column hg_top_client_columns[HG_TOP_CLIENT_COLUMNS] = {
    [C_PEER] = {"PEER", "peer", false, 15, 0},
    [C_TENANT] = {"TENANT", "tenant", false, 8, 1},
    [C_USER] = {"USER", "user", false, 6, 5},
    [C_RATE] = {"REQ/S", "requests_per_s", true, 0, 1},
    [C_REQUESTS] = {"REQUESTS", "requests", true, 0, 7},
    [C_IDLE] = {"IDLE S", "idle_s", true, 0, 4},
    [C_AGE] = {"AGE S", "age_s", true, 0, 6},
    [C_QUEUE] = {"QUEUE", "queue", true, 0, 3},
    [C_OUT] = {"OUT", "out_bytes", true, 0, 7},
    [C_WAIT] = {"WAIT", "wait", false, 0, 2},
    [C_AGENT] = {"AGENT", "agent", false, 8, 8},
};

/* What is known of a connection. An agent may call itself "x age_s=1 ...": the server's own fields
   stand behind it, so the last one of a name counts. */
struct client {
    char text[2048];
    const char *peer, *user, *tenant, *agent, *numbers;
};

static char *last_of(char *text, const char *what)
{
    char *found = NULL;
    for (char *at = strstr(text, what); at != NULL; at = strstr(at + 1, what))
        found = at;
    return found;
}

/* Cuts the text in front of the mark; what is behind it, or "-". */
static const char *cut_at(char *found, const char *mark)
{
    if (found == NULL)
        return "-";
    *found = '\0';
    return found + strlen(mark);
}

static void parse_client(const char *value, struct client *ret)
{
    snprintf(ret->text, sizeof ret->text, "%s", value);
    char *text = ret->text;
    ret->numbers = cut_at(last_of(text, " age_s="), " ");
    ret->agent = cut_at(strstr(text, " agent="), " agent=");
    ret->tenant = cut_at(strstr(text, " bucket="), " bucket=");
    ret->user = cut_at(strstr(text, " user="), " user=");
    ret->peer = strncmp(text, "peer=", 5) == 0 ? text + 5 : text;
}

/* The word behind "NAME="; "" when there is none. */
static void word_of(const struct client *client, const char *name, char *ret, size_t size)
{
    size_t len = strlen(name);
    ret[0] = '\0';
    for (const char *at = client->numbers; at != NULL; at = strchr(at, ' ')) {
        at += *at == ' ';
        if (strncmp(at, name, len) == 0 && at[len] == '=')
            snprintf(ret, size, "%.*s", (int)strcspn(at + len + 1, " "), at + len + 1);
    }
}

static double number_of(const struct client *client, const char *name)
{
    char text[32];
    word_of(client, name, text, sizeof text);
    return text[0] >= '0' && text[0] <= '9' ? strtod(text, NULL) : NAN;
}

static void add_client(const struct hg_top_part *old, const struct hg_top_part *part,
                       struct hg_top_view *view, const struct hg_ctl_row *row)
{
    struct client client, earlier;
    const struct hg_top_entry *entry = hg_top_find(old, row->name);
    char wait[24];
    double requests_before = NAN;
    parse_client(row->value, &client);
    if (entry != NULL) {
        parse_client(entry->row->value, &earlier);
        if (strcmp(earlier.peer, client.peer) == 0) /* not another one with its number */
            requests_before = number_of(&earlier, "requests");
    }
    struct hg_top_line *line = hg_top_view_add(view);
    word_of(&client, "wait", wait, sizeof wait);
    hg_top_set(line, C_PEER, client.peer);
    hg_top_set(line, C_TENANT, client.tenant);
    hg_top_set(line, C_USER, client.user);
    hg_top_set_shown(line, C_AGENT, client.agent);
    hg_top_set_number(line, C_RATE,
                      hg_top_rate(old, part, requests_before, number_of(&client, "requests")));
    hg_top_set_number(line, C_REQUESTS, number_of(&client, "requests"));
    hg_top_set_number(line, C_IDLE, number_of(&client, "idle_ms") / 1000);
    hg_top_set_number(line, C_AGE, number_of(&client, "age_s"));
    hg_top_set_number(line, C_QUEUE, number_of(&client, "queue"));
    hg_top_set_number(line, C_OUT, number_of(&client, "out_bytes"));
    bool waits = strcmp(wait, "none") != 0 && strcmp(wait, "process") != 0;
    hg_top_set(line, C_WAIT, waits ? wait : "");
    line->mark = waits ? HG_TOP_NOTED : HG_TOP_PLAIN;
}

void hg_top_build_clients(const struct hg_top_sample *before, const struct hg_top_sample *now,
                          struct hg_top_view *view)
{
    const struct hg_top_part *part = &now->parts[HG_TOP_CLIENTS];
    for (size_t i = 0; i < part->rows.count; i++)
        add_client(before != NULL ? &before->parts[HG_TOP_CLIENTS] : NULL, part, view,
                   &part->rows.row[i]);
}
