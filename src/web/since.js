// since - who is throttled, without a flicker, and since when
// SPDX-License-Identifier: BSD-3-Clause
//
// The server says who was throttled in the last second. Limits bite in bursts: a second in which a
// tenant's requests only waited, or nothing came, is not the end of it. So it counts as throttled
// until it was not for some seconds and nothing of it is held.
//
// Since when: the refusals in the history tell, also from before this page was opened; for a tenant
// that is held and not refused it is when the page first saw it.

const PAUSE_S = 3;

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
        this.seen = new Map(); // name -> {first, last: times of the server, why}
    }

    goesOn(tenant, seen, now) {
        return seen && (tenant.held > 0 || now >= seen.last && now - seen.last <= PAUSE_S);
    }

    /* Corrects `throttled` and `why` of each tenant, and gives those their `since`. */
    update(tenants, history, now) {
        const before = this.seen;
        this.seen = new Map();
        for (const tenant of tenants) {
            const known = before.get(tenant.name);
            if (tenant.throttled) {
                const past = history.groups.tenants[tenant.name]?.rejected_per_s;
                const first = known?.first ?? Math.min(now, past ? begin(history.time, past) : Infinity);
                this.seen.set(tenant.name, {first, last: now, why: tenant.why});
                tenant.since = first;
            } else if (this.goesOn(tenant, known, now)) {
                this.seen.set(tenant.name, known);
                tenant.throttled = true;
                tenant.since = known.first;
                const fresh = tenant.why || [];
                tenant.why = (known.why || []).filter(old => !fresh.some(reason => reason.code === old.code))
                    .map(old => ({...old, per_s: 0})).concat(fresh);
            }
        }
    }
}
