// probe_point - places at which a tracer (bpftrace, perf, systemtap) may look into a running
// process SPDX-License-Identifier: BSD-3-Clause
//
// HG_PROBE_POINT(name, a, b, c) is a user-level statically defined tracing point of the provider
// `headgate`: a nop and a note in the program's file, if it was configured with --enable-usdt, and
// nothing otherwise. Arguments are evaluated in either case: words that are at hand already. The
// points are listed in the manual (operations.md).
#ifndef HG_BASE_PROBE_POINT_H
#define HG_BASE_PROBE_POINT_H

#ifdef HG_USDT
#include <sys/sdt.h>
#define HG_PROBE_POINT(name, a, b, c) DTRACE_PROBE3(headgate, name, a, b, c)
#else
#define HG_PROBE_POINT(name, a, b, c) ((void)(a), (void)(b), (void)(c))
#endif

#endif
