// rate - requests a second that change at given times
// SPDX-License-Identifier: BSD-3-Clause
#include "load/rate.h"

#include <math.h>
#include <string.h>

#include "load/parse.h"

/* A rate and a time, with room for the longest number that is one. */
#define PIECE_MAX 80

/* "500@2.5" or "500"; without a time it is 0. */
static bool parse_step(char *piece, double max, double seconds, struct hg_rate_step *ret_step)
{
    double at = 0;
    char *sign = strchr(piece, '@');
    if (sign != NULL) {
        *sign = '\0';
        if (!hg_load_parse_real(sign + 1, 0, seconds, &at)) {
            return false;
        }
    }
    ret_step->at_ns = (uint64_t)(at * 1e9);
    if (strcmp(piece, HG_RATE_MAX_WORD) == 0) {
        ret_step->rate = INFINITY;
        return true;
    }
    return hg_load_parse_real(piece, 0, max, &ret_step->rate);
}

enum hg_rate_error hg_rate_parse(const char *text, double max, double seconds,
                                 struct hg_rate *ret_rate)
{
    struct hg_rate rate = {0};
    while (true) {
        char piece[PIECE_MAX];
        struct hg_rate_step step;
        size_t len = strcspn(text, ",/");
        if (len >= sizeof piece) {
            return HG_RATE_BAD_WORD;
        }
        memcpy(piece, text, len);
        piece[len] = '\0';
        if (!parse_step(piece, max, seconds, &step)) {
            return HG_RATE_BAD_WORD;
        }
        if (rate.count == HG_RATE_STEPS_MAX) {
            return HG_RATE_TOO_MANY;
        }
        if (rate.count == 0 && step.at_ns != 0) {
            return HG_RATE_NO_START;
        }
        if (rate.count > 0 && step.at_ns <= rate.step[rate.count - 1].at_ns) {
            return HG_RATE_NO_ORDER;
        }
        rate.step[rate.count++] = step;
        if (text[len] == '\0') {
            break;
        }
        text += len + 1;
    }
    bool unbounded = rate.step[0].rate <= 0 || isinf(rate.step[0].rate);
    rate.count = rate.count == 1 && unbounded ? 0 : rate.count;
    *ret_rate = rate;
    return HG_RATE_FINE;
}

uint64_t hg_rate_when(struct hg_rate_cursor *cursor, double number)
{
    const struct hg_rate *rate = cursor->rate;
    while (true) {
        const struct hg_rate_step *step = &rate->step[cursor->step];
        uint64_t end_ns = hg_rate_step_end(rate, cursor->step);
        double here =
            end_ns == UINT64_MAX ? INFINITY : step->rate * (double)(end_ns - step->at_ns) / 1e9;
        if (step->rate > 0 && number - cursor->before < here) {
            return step->at_ns + (uint64_t)((number - cursor->before) / step->rate * 1e9);
        }
        if (end_ns == UINT64_MAX) {
            return UINT64_MAX;
        }
        cursor->before += here;
        cursor->step++;
    }
}
