// history - the last ten minutes, second by second, put together from the server's answers
// SPDX-License-Identifier: BSD-3-Clause
//
// Each series has a value for each second of `time`, null where there is none. The server is asked
// for what is new only. Its clock counts, not this machine's. When a tenant or an upstream appears of
// which the past is not known here, all is asked for again.

export const SPAN_S = 600;

export class History {
    constructor() {
        this.clear();
    }

    clear() {
        this.time = [];
        this.series = {};
        this.groups = {upstreams: {}, tenants: {}};
        this.stale = false; // ask for all of it again
    }

    /* What to ask for. */
    get since() {
        return this.stale || !this.time.length ? 0 : this.time[this.time.length - 1];
    }

    add(answer) {
        const times = answer.time || [];
        if (this.stale || !this.time.length) {
            this.clear();
        } else if (this.isBeforeUs(answer)) {
            this.clear(); // the server's clock went back
        }
        const first = this.time.length === 0;
        const fresh = times.findIndex(time => first || time > this.time[this.time.length - 1]);
        if (fresh >= 0) {
            const before = this.time.length;
            const places = this.placesFor(times, fresh);
            this.put(this.series, answer.series || {}, places, before);
            for (const group of ['upstreams', 'tenants']) {
                this.addGroup(this.groups[group], answer[group] || {}, places, before, first);
            }
        }
        this.forget();
    }

    isBeforeUs(answer) {
        return typeof answer.now === 'number' && answer.now < this.time[this.time.length - 1] - 2;
    }

    /* Lengthens `time`, with the seconds that are missing between; [place in the answer, or -1]. */
    placesFor(times, fresh) {
        const places = [];
        for (let i = fresh; i < times.length; i++) {
            const last = this.time[this.time.length - 1];
            for (let gap = last + 1; gap < times[i] && times[i] - last < SPAN_S; gap++) {
                this.time.push(gap);
                places.push(-1);
            }
            this.time.push(times[i]);
            places.push(i);
        }
        return places;
    }

    /* Appends to each series that is known or comes; `before`: how many values each has so far. */
    put(known, come, places, before) {
        for (const name of new Set([...Object.keys(known), ...Object.keys(come)])) {
            const series = known[name] || (known[name] = new Array(before).fill(null));
            const from = come[name] || [];
            for (const place of places) {
                series.push(place < 0 ? null : from[place] ?? null);
            }
        }
    }

    addGroup(known, come, places, before, first) {
        for (const name of Object.keys(come)) {
            if (!Object.hasOwn(known, name)) {
                known[name] = {};
                this.stale ||= !first;
            }
        }
        for (const [name, series] of Object.entries(known)) {
            this.put(series, Object.hasOwn(come, name) ? come[name] : {}, places, before);
        }
    }

    /* Drops what is older than the span. */
    forget() {
        const end = this.time[this.time.length - 1];
        const old = this.time.findIndex(time => time > end - SPAN_S);
        if (old > 0) {
            this.time.splice(0, old);
            const all = [this.series, ...Object.values(this.groups.upstreams), ...Object.values(this.groups.tenants)];
            for (const set of all) {
                for (const series of Object.values(set)) {
                    series.splice(0, old);
                }
            }
        }
    }

    /* Names of a group, those with the largest sum of a series first. */
    busiest(group, field, most) {
        const sums = Object.entries(this.groups[group]).map(
            ([name, set]) => [name, (set[field] || []).reduce((sum, value) => sum + (value || 0), 0)]);
        return sums.sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).slice(0, most).map(([name]) => name);
    }
}
