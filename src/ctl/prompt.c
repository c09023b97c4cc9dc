// prompt - where a password comes from: a file, the environment, the terminal, standard input
// SPDX-License-Identifier: BSD-3-Clause
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "ctl/ctl.h"

#define PASSWORD_MAX 1024

void hg_ctl_password_free(char *password)
{
    if (password == NULL)
        return;
    explicit_bzero(password, strlen(password));
    free(password);
}

/* The first line, without its end, into out[PASSWORD_MAX + 1]. 0, -EFBIG, or -errno. `waiting`:
   the signals that are blocked but while it waits, when there are some that may come. */
static int read_line(int fd, const sigset_t *waiting, char *out)
{
    size_t len = 0;
    for (;;) {
        char c;
        struct pollfd readable = {fd, POLLIN, 0};
        if (waiting != NULL && ppoll(&readable, 1, NULL, waiting) < 0)
            return -errno;
        ssize_t n = read(fd, &c, 1);
        if (n < 0)
            return -errno;
        if (n == 0 || c == '\n')
            break;
        if (len == PASSWORD_MAX)
            return -EFBIG;
        out[len++] = c;
    }
    if (len > 0 && out[len - 1] == '\r')
        len--;
    out[len] = '\0';
    return 0;
}

/* ---- the terminal ---- */

static volatile sig_atomic_t caught;

static void on_signal(int number)
{
    caught = number;
}

/* Without echo; a signal that ends or stops the program comes after the echo is back. Signals are
   blocked until the wait for a key: none can come unnoticed just before it. */
static int read_hidden(int tty, const char *text, char *out)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP};
    struct sigaction before[HG_COUNT_OF(signals)], action = {.sa_handler = on_signal};
    struct termios echo, silent;
    sigset_t blocked, mask;
    if (tcgetattr(tty, &echo) != 0)
        return -errno;
    silent = echo;
    silent.c_lflag &= ~(tcflag_t)ECHO;
    caught = 0;
    sigemptyset(&blocked);
    for (size_t i = 0; i < HG_COUNT_OF(signals); i++)
        sigaddset(&blocked, signals[i]);
    sigprocmask(SIG_BLOCK, &blocked, &mask);
    for (size_t i = 0; i < HG_COUNT_OF(signals); i++)
        sigaction(signals[i], &action, &before[i]);
    /* Silent before the question: what is typed in answer to it must not be seen. */
    int rc = tcsetattr(tty, TCSAFLUSH, &silent) != 0 || dprintf(tty, "%s", text) < 0 ? -errno : 0;
    if (rc == 0)
        rc = read_line(tty, &mask, out);
    tcsetattr(tty, TCSAFLUSH, &echo);
    dprintf(tty, "\n");
    for (size_t i = 0; i < HG_COUNT_OF(signals); i++)
        sigaction(signals[i], &before[i], NULL);
    sigprocmask(SIG_SETMASK, &mask, NULL);
    if (caught != 0)
        raise(caught);
    return rc;
}

static int ask_terminal(int tty, const struct hg_ctl_prompt *prompt, char *out)
{
    char again[PASSWORD_MAX + 1] = "";
    int rc = read_hidden(tty, prompt->text, out);
    int code = HG_CTL_OK;
    if (rc == 0 && prompt->twice) {
        rc = read_hidden(tty, "Once more: ", again);
        if (rc == 0 && strcmp(out, again) != 0)
            code = hg_ctl_say(HG_CTL_USAGE, "the two passwords are not the same");
        explicit_bzero(again, sizeof again);
    }
    if (rc != 0)
        code = hg_ctl_say(HG_CTL_USAGE, "cannot read the password from the terminal: %s",
                          strerror(-rc));
    return code;
}

/* ---- which of them ---- */

static int from_file(const char *path, char *out)
{
    bool input = strcmp(path, "-") == 0;
    int fd = input ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    int rc = fd < 0 ? -errno : read_line(fd, NULL, out);
    if (fd >= 0 && !input)
        close(fd);
    if (rc == 0)
        return HG_CTL_OK;
    return hg_ctl_say(HG_CTL_USAGE, "cannot read the password from '%s': %s", path,
                      rc == -EFBIG ? "its first line is longer than 1024 bytes" : strerror(-rc));
}

static int from_environment(const char *text, char *out)
{
    if (strlen(text) > PASSWORD_MAX)
        return hg_ctl_say(HG_CTL_USAGE, "HEADGATE_PASSWORD is longer than 1024 bytes");
    strcpy(out, text);
    return HG_CTL_OK;
}

static int from_somewhere(struct hg_ctl *ctl, const struct hg_ctl_prompt *prompt, char *out)
{
    const char *variable = prompt->from_environment ? getenv("HEADGATE_PASSWORD") : NULL;
    if (ctl->password_file != NULL)
        return from_file(ctl->password_file, out);
    if (variable != NULL)
        return from_environment(variable, out);
    if (prompt->from_input && !isatty(STDIN_FILENO))
        return from_file("-", out);
    int tty = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
    if (tty < 0)
        return hg_ctl_say(HG_CTL_USAGE, "no password: there is no terminal to ask on (accepted: "
                                        "--password-file, the variable HEADGATE_PASSWORD)");
    int code = ask_terminal(tty, prompt, out);
    close(tty);
    return code;
}

int hg_ctl_password(struct hg_ctl *ctl, const struct hg_ctl_prompt *prompt, char **ret)
{
    char text[PASSWORD_MAX + 1] = "";
    int code = from_somewhere(ctl, prompt, text);
    if (code == HG_CTL_OK && text[0] == '\0')
        code = hg_ctl_say(HG_CTL_USAGE, "the password is empty");
    if (code == HG_CTL_OK && (*ret = strdup(text)) == NULL)
        abort();
    explicit_bzero(text, sizeof text);
    return code;
}
