// slow - the last slow requests, and where their time went
// SPDX-License-Identifier: BSD-3-Clause

import {make, setText, setTitle} from './dom.js';
import {clock, microseconds} from './format.js';
import {drawBar, Table} from './table.js';

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
                {id: 'time', title: 'Time', number: true, value: row => row.time, text: row => clock(row.time)},
                {id: 'tenant', title: 'Tenant', value: row => row.tenant, text: row => row.tenant},
                {id: 'operation', title: 'Operation', value: row => row.operation, text: row => row.operation},
                {id: 'key', title: 'Key', value: row => row.key, show: showKey},
                {id: 'server', title: 'Server', value: row => row.server, text: row => row.server || '–'},
                {id: 'outcome', title: 'Outcome', value: row => row.outcome, text: row => String(row.outcome).replace(/_/g, ' ')},
                {id: 'total', title: 'Total', number: true, value: row => row.total_us, text: row => microseconds(row.total_us)},
                {id: 'where', title: 'Where', hint: 'In the line for a ticket or a connection, held for credits, at the store', value: row => row.backend_us / row.total_us, number: true, show: showWhere},
                {id: 'queue', title: 'In line', number: true, value: row => row.queue_us, text: row => microseconds(row.queue_us)},
                {id: 'throttle', title: 'Held', number: true, value: row => row.throttle_us, text: row => microseconds(row.throttle_us)},
                {id: 'backend', title: 'At the store', number: true, value: row => row.backend_us, text: row => microseconds(row.backend_us)},
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
    drawBar(cell, '', [{className: 'queue', percent: of(row.queue_us)}, {className: 'throttle', percent: of(row.throttle_us)},
                       {className: 'backend', percent: of(row.backend_us)}]);
}
