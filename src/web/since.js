// since - since when each tenant is throttled
// SPDX-License-Identifier: BSD-3-Clause
//
// The server says what is, and not since when. A tenant's refusals in the history tell it, also from
// before this page was opened; for one that is held and not refused it is when the page first saw it.

const PAUSE_S = 5; // without refusals: limits bite in bursts, so it is still the same throttling

/* Of a series: the time at which what still goes on at its end began; Infinity when nothing does. */
function begin(time, values) {
    let found = Infinity;
    for (let i = time.length - 1; i >= 0; i--) {
        if (values[i] > 0) {
            found = time[i];
        } else if ((found === Infinity ? time[time.length - 1] : found) - time[i] > PAUSE_S) {
            break;
        }
    }
    return found;
}

export class Since {
    constructor() {
        this.seen = new Map();
    }

    /* Gives each tenant that is throttled its `since`, a time of the server. */
    update(tenants, history, now) {
        const before = this.seen;
        this.seen = new Map();
        for (const tenant of tenants) {
            if (tenant.throttled) {
                const past = history.groups.tenants[tenant.name]?.rejected_per_s;
                const first = before.get(tenant.name) ?? Math.min(now, past ? begin(history.time, past) : Infinity);
                this.seen.set(tenant.name, first);
                tenant.since = first;
            }
        }
    }
}
