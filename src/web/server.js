// server - the process: its tiles, what it is, and how its requests ended
// SPDX-License-Identifier: BSD-3-Clause

import {make, setClass, setText} from './dom.js';
import {count, duration, microseconds, units, NONE} from './format.js';

/* Terms and values of a <dl>, kept by their term. */
class Terms {
    constructor(element) {
        this.element = element;
        this.known = new Map();
    }

    set(term, value, className = '') {
        if (!this.known.has(term)) {
            const node = make('dd');
            this.element.append(make('div', '', make('dt', '', term), node));
            this.known.set(term, node);
        }
        const node = this.known.get(term);
        setText(node, value);
        setClass(node, className);
    }
}

const last = series => series?.length ? series[series.length - 1] : null;

/* The numbers of now, in a line. */
export class Tiles {
    constructor(element) {
        this.terms = new Terms(element);
    }

    update({status}, series) {
        const set = (term, value, level = '') => this.terms.set(term, value, level);
        const alarm = (value, level) => value > 0 ? level : '';
        set('Requests/s', count(status.requests_per_s));
        set('Throttled/s', count(last(series.throttled_per_s)), alarm(last(series.throttled_per_s), 'warn'));
        set('Failed/s', count(last(series.failed_per_s)), alarm(last(series.failed_per_s), 'bad'));
        set('Latency p50', microseconds(last(series.p50_us)));
        set('p99', microseconds(last(series.p99_us)));
        set('Held', count(last(series.held)), alarm(last(series.held), 'warn'));
        set('In line', count(last(series.queued)), alarm(last(series.queued), 'warn'));
        set('Connections', count(status.connections));
        set('Units/s', count(status.units_per_s));
        set('Free pool', status.free_pool === null ? '∞' : count(status.free_pool));
    }
}

export class Server {
    constructor(section) {
        const facts = make('dl', 'facts'), outcomes = make('dl', 'facts outcomes');
        section.append(facts, make('h3', '', 'How requests ended, since the start'), outcomes);
        this.facts = new Terms(facts);
        this.outcomes = new Terms(outcomes);
    }

    update({status}) {
        const set = (term, value, level) => this.facts.set(term, value, level);
        set('Version', String(status.version ?? NONE));
        set('State', String(status.state ?? NONE), status.state === 'running' ? '' : 'bad');
        set('Ready', status.ready === undefined ? NONE : status.ready ? 'yes' : 'no', status.ready === false ? 'bad' : '');
        set('Up for', duration(status.uptime_s));
        set('Process', String(status.pid ?? NONE));
        set('Workers', count(status.workers));
        set('Connections', count(status.connections) + ' of ' + count(status.max_connections));
        set('Requests', count(status.requests));
        set('Node capacity', units(status.node_capacity) + (status.node_capacity === null ? '' : ' units/s'),
            status.overcommitted ? 'warn' : '');
        set('Reloads', count(status.reloads));
        set('Refused reloads', count(status.reload_errors), status.reload_errors > 0 ? 'warn' : '');
        set('Epoch', count(status.epoch_ms / 1000) + ' s');
        for (const [name, value] of Object.entries(status.outcomes || {})) {
            if (value > 0 || this.outcomes.known.has(name.replace(/_/g, ' '))) {
                this.outcomes.set(name.replace(/_/g, ' '), count(value));
            }
        }
    }
}
