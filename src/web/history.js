// history - the last ten minutes, second by second, put together from the server's answers
// SPDX-License-Identifier: BSD-3-Clause
//
// Each series has a value for each second of `time`, null where there is none. The server is asked
// for what is new only. Its clock counts, not this machine's. When a tenant or an upstream appears of
// which the past is not known here, all is asked for again.

export const SPAN_S = 600;
const WHOLE_EVERY_S = 10; // at most: who is among the busiest may change each second

/* An object that has these names and no others: a tenant may be called `constructor`. */
const named = entries => Object.assign(Object.create(null), Object.fromEntries(entries));

export class History {
    constructor() {
        this.clear();
    }

    clear() {
        this.time = [];
        this.series = {};
        this.groups = {upstreams: named([]), tenants: named([])};
        this.lacks = false;  // the past of one of them
        this.wholeAt = 0;    // when all was asked for
        this.asksAll = false;
    }

    get end() {
        return this.time[this.time.length - 1];
    }

    /* From when on to ask; what is added next is the answer to that. */
    ask() {
        this.asksAll = !this.time.length || this.lacks && this.end - this.wholeAt >= WHOLE_EVERY_S;
        return this.asksAll ? 0 : this.end;
    }

    add(answer) {
        const times = answer.time || [];
        if (this.isBeforeUs(answer)) {
            this.clear();
        }
        if (this.asksAll) {
            // A server that was started anew knows less than we do: what was before stays.
            this.keep(time => times.length > 0 && time < times[0]);
            this.lacks = false;
        }
        const first = this.asksAll || this.time.length === 0;
        const fresh = times.findIndex(time => !this.time.length || time > this.end);
        if (fresh >= 0) {
            const before = this.time.length;
            const places = this.placesFor(times, fresh);
            this.put(this.series, answer.series || {}, places, before);
            for (const group of ['upstreams', 'tenants']) {
                this.addGroup(this.groups[group], answer[group] || {}, places, before, first);
            }
        }
        this.keep(time => time > this.end - SPAN_S);
        if (first) {
            this.wholeAt = this.end || 0;
        }
    }

    /* The server's clock went back. */
    isBeforeUs(answer) {
        return typeof answer.now === 'number' && answer.now < this.end - 2;
    }

    /* Lengthens `time`, with the seconds that are missing between; [place in the answer, or -1]. */
    placesFor(times, fresh) {
        const places = [];
        for (let i = fresh; i < times.length; i++) {
            const last = this.end;
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
                this.lacks ||= !first;
            }
        }
        for (const [name, series] of Object.entries(known)) {
            this.put(series, Object.hasOwn(come, name) ? come[name] : {}, places, before);
        }
    }

    /* Drops the seconds that fail the test, and who then has none left. */
    keep(test) {
        const places = this.time.flatMap((time, place) => test(time) ? [place] : []);
        if (places.length === this.time.length) {
            return;
        }
        const pick = values => places.map(place => values[place]);
        const pickAll = set => Object.fromEntries(Object.entries(set).map(([name, values]) => [name, pick(values)]));
        this.time = pick(this.time);
        this.series = pickAll(this.series);
        for (const [name, group] of Object.entries(this.groups)) {
            this.groups[name] = named(Object.entries(group).map(([who, set]) => [who, pickAll(set)])
                .filter(([, set]) => Object.values(set).some(values => values.some(value => value !== null))));
        }
    }

    /* Names of a group that have a series, those with the largest sum first; no idle tenants. */
    busiest(group, field, most) {
        const sums = Object.entries(this.groups[group]).map(
            ([name, set]) => [name, (set[field] || []).reduce((sum, value) => sum + (value || 0), 0)]);
        return sums.filter(([, sum]) => sum > 0 || group !== 'tenants')
            .sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).slice(0, most).map(([name]) => name);
    }
}
