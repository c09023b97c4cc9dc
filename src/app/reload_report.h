// reload_report - what a reload changes, or would change, as the JSON that ConfigValidate and
// ConfigReload answer
// SPDX-License-Identifier: BSD-3-Clause
//
//     {"changes": [{"option": "tenant.shop.reserved", "before": "5000", "after": "6000",
//                   "at_run_time": true}],
//      "warnings": ["headgate.yaml:7: 'reserved' of tenant 'shop' was set by opcode, ..."],
//      "rings": [{"upstream": "cache", "keys": 100000, "moved": 24987, "percent": 24.99,
//                 "servers": [{"server": "10.0.0.1:11211", "before_percent": 50.0,
//                              "after_percent": 33.4}]}],
//      "left_out": {"changes": 12}}
//
// `before` or `after` is absent where something came or went. Of a secret only whether there is
// one. What is too much is left out and counted. Housekeeping's.
#ifndef HG_APP_RELOAD_REPORT_H
#define HG_APP_RELOAD_REPORT_H

#include "app/conf.h"
#include "app/conf_errors.h"
#include "base/attr.h"

struct hg_report;

/* NULL when memory is out. */
struct hg_report *hg_report_new(void);
void hg_report_free(struct hg_report *report);

void hg_report_change(struct hg_report *report, const struct hg_conf_change *change);
void hg_report_warnings(struct hg_report *report, const struct hg_conf_errors *errs);
/* Of each memcached upstream that is in both, and whose keys are spread otherwise: how many of a
   sample of HG_REPORT_KEYS fixed keys ("sample-key-0" ...) change their server. All rings together
   take at most about HG_REPORT_RINGS_US; then the sample is smaller, and `keys` says so. */
void hg_report_rings(struct hg_report *report, const struct hg_conf *before,
                     const struct hg_conf *after);

/* malloc'd; NULL when memory was out. */
char *hg_report_text(const struct hg_report *report);

#define HG_REPORT_KEYS     100000
#define HG_REPORT_RINGS_US 1000000 /* statistics and administration wait for so long */

#endif
