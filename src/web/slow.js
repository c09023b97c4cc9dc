// slow - the last slow requests, and where their time went
// SPDX-License-Identifier: BSD-3-Clause

import {make, setText, setTitle} from './dom.js';
import {clock, microseconds, NONE} from './format.js';
import {drawBar, number, Table, words} from './table.js';

/* The log knows no numbers, and two may be alike: the how-manieth of its kind it is tells them apart. */
function numbered(rows) {
    const seen = new Map();
    return rows.map(row => {
        const what = JSON.stringify([row.time, row.tenant, row.operation, row.key, row.total_us]);
        const number = (seen.get(what) || 0) + 1;
        seen.set(what, number);
        return {...row, id: what + number};
    });
}

const time = (id, title, value, hint) => number(id, title, value, hint, {text: row => microseconds(value(row))});

export class Slow {
    constructor(section) {
        this.table = new Table(section, {
            name: ['request', 'requests'],
            id: row => row.id,
            text: row => [row.tenant, row.operation, row.key, row.server, row.outcome].join(' '),
            limit: 10,
            empty: 'No request was slow.',
            sort: {column: 'time', descending: true, then: (a, b) => b.total_us - a.total_us},
            columns: [
                number('time', 'Time', row => row.time, '', {text: row => clock(row.time)}),
                words('tenant', 'Tenant', row => row.tenant),
                words('operation', 'Operation', row => row.operation),
                words('key', 'Key', row => row.key, {show: showKey}),
                words('server', 'Server', row => row.server || NONE),
                words('outcome', 'Outcome', row => String(row.outcome).replace(/_/g, ' ')),
                time('total', 'Total', row => row.total_us),
                number('where', 'Where', row => row.backend_us / row.total_us,
                    'In line (violet), held (amber), at the store (blue)', {show: showWhere}),
                time('queue', 'In line', row => row.queue_us, 'For a ticket, or for a connection'),
                time('throttle', 'Held', row => row.throttle_us, 'For credits'),
                time('backend', 'At the store', row => row.backend_us),
            ],
        });
    }

    update({slow}) {
        this.table.update(numbered(slow.slow || []));
    }
}

function showKey(cell, row) {
    if (!cell.label) {
        cell.label = make('span', 'key');
        cell.append(cell.label);
    }
    setText(cell.label, row.key || '');
    setTitle(cell.label, row.key || '');
}

function showWhere(cell, row) {
    const of = value => row.total_us > 0 ? value / row.total_us * 100 : 0;
    drawBar(cell, '', [{className: 'queue', percent: of(row.queue_us)},
                       {className: 'throttle', percent: of(row.throttle_us)},
                       {className: 'backend', percent: of(row.backend_us)}]);
}
