// t_link_tls_trust - a link over TLS: whom it takes for its server, how many at a time, new files
// SPDX-License-Identifier: BSD-3-Clause
#include "wire.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- whom to trust ---- */

static void t_who_is_not_trusted(void **state)
{
    (void)state;
    const struct {
        struct rules rules;
        const char *word;
    } cases[] = {
        {{.trusted = wire_stranger.certificate_file}, "certificate"},
        {{.shown = &wire_expired}, "expired"},
        {{.shown = &wire_stranger}, "certificate"},
        {{.host = "other.example"}, "mismatch"},
        {{.host = "10.0.0.2"}, "mismatch"},
        {{.server_name = "other.example"}, "mismatch"},
    };
    for (size_t i = 0; i < HG_COUNT_OF(cases); i++) {
        struct wire *wire = wire_new(&cases[i].rules);
        struct note note;
        pair_get(&wire->pair, &note, "confidential");
        wire_assert_refused(wire, cases[i].word);
        assert_int_equal(note.result.fault, HG_FAULT_DOWN);
        assert_int_equal(wire->heard_len, 0);
        wire_free(wire);
    }
}

static void t_who_is_trusted(void **state)
{
    (void)state;
    const struct rules cases[] = {
        {.host = "10.0.0.1"},
        {.host = "10.9.9.9", .server_name = "cache.example"},
        {.trusts_all = true, .shown = &wire_expired, .host = "who.example"},
        {.asks = true, .own = &wire_client},
    };
    for (size_t i = 0; i < HG_COUNT_OF(cases); i++) {
        struct wire *wire = wire_new(&cases[i]);
        wire_come_up(wire);
        wire_free(wire);
    }
}

/* In version 1.3 it says so after the handshake. */
static void t_who_wants_a_certificate(void **state)
{
    (void)state;
    const struct rules cases[] = {{.asks = true, .probe = true},
                                  {.asks = true, .probe = true, .own = &wire_stranger}};
    for (size_t i = 0; i < HG_COUNT_OF(cases); i++) {
        struct wire *wire = wire_new(&cases[i]);
        wire_assert_refused(wire, "alert");
        wire_free(wire);
    }
}

/* ---- many, and new ---- */

static void t_a_turn_makes_few_steps(void **state)
{
    (void)state;
    enum { LINKS = 13, STEPS = 4 };
    struct wire *wire = wire_new(&(struct rules){0});
    struct hg_link *links[LINKS];
    int fds[LINKS][2];
    uint8_t byte;
    for (int i = 0; i < LINKS; i++) {
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds[i]),
                         0);
        links[i] = pair_bare_link(&wire->pair);
        links[i]->uptls = wire->uptls;
        links[i]->host = "cache.example";
        hg_link_adopt(links[i], fds[i][0], false);
    }
    int greeted = 0;
    for (int turns = 1; greeted < LINKS; turns++) {
        greeted = 0;
        for (int i = 0; i < LINKS; i++)
            greeted += recv(fds[i][1], &byte, 1, MSG_PEEK) == 1;
        assert_true(greeted <= STEPS * turns);
        assert_true(turns <= LINKS);
        pair_turn(&wire->pair);
    }
    for (int i = 0; i < LINKS; i++) {
        hg_link_end(links[i], HG_LINK_LET_GO, 0);
        close(fds[i][1]);
    }
    wire_free(wire);
}

static void copy(const char *from, const char *to)
{
    char text[8192];
    FILE *f = fopen(from, "r");
    assert_non_null(f);
    size_t n = fread(text, 1, sizeof text, f);
    fclose(f);
    f = fopen(to, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, n, f), n);
    fclose(f);
}

static void t_new_files(void **state)
{
    (void)state;
    char path[] = "/tmp/hgtrust.XXXXXX", why[HG_TLS_WHY_BYTES] = "";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    copy(wire_stranger.certificate_file, path);
    const struct hg_uptls_conf conf = wire_conf(&(struct rules){.trusted = path});
    struct hg_uptls *uptls = hg_uptls_new(&conf, why);
    assert_non_null(uptls);
    assert_int_equal(hg_uptls_renew(uptls, &conf, why), 0);
    copy("/dev/null", path);
    assert_true(hg_uptls_renew(uptls, &conf, why) < 0);
    assert_non_null(strstr(why, path));
    assert_true(hg_uptls_renew(uptls, &conf, why) < 0); /* and says so each time */
    copy(wire_ca.certificate_file, path);
    assert_int_equal(hg_uptls_renew(uptls, &conf, why), 1);
    assert_int_equal(hg_uptls_renew(uptls, &conf, why), 0);
    hg_uptls_free(uptls);
    unlink(path);
    assert_null(hg_uptls_new(&conf, why));
    assert_non_null(strstr(why, path));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(t_who_is_not_trusted),
        cmocka_unit_test(t_who_is_trusted),
        cmocka_unit_test(t_who_wants_a_certificate),
        cmocka_unit_test(t_a_turn_makes_few_steps),
        cmocka_unit_test(t_new_files),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, wire_begin, wire_end);
}
