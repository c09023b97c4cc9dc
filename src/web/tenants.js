// tenants - each tenant against its reservation and its limit, and why it is throttled
// SPDX-License-Identifier: BSD-3-Clause

import {make, setHidden, setTag, setText, setTitle} from './dom.js';
import {count, units} from './format.js';
import {drawBar, number, Table, words} from './table.js';
import {isActive, isExempt, whyText} from './words.js';

const NEAR_PERCENT = 95; // of its hard limit: as good as at it

export class Tenants {
    constructor(section) {
        this.hotkeys = {};
        this.scale = 1;
        this.table = new Table(section, {
            name: ['tenant', 'tenants'],
            id: row => row.name,
            text: row => [row.name, row.upstream, row.state, row.throttled ? 'throttled' : '', row.whyText].join(' '),
            limit: 20,
            empty: 'No tenant.',
            only: {title: 'throttled', test: row => row.throttled || !isActive(row)},
            level: row => row.throttled || row.isExempt || !isActive(row) ? 'warn' : '',
            sort: {column: 'state', descending: true,
                   then: (a, b) => b.units_per_s - a.units_per_s || (a.name < b.name ? -1 : 1)},
            columns: [
                words('name', 'Tenant', row => row.name, {show: showName}),
                words('state', 'State', urgency, {
                    hint: 'Throttled ones, and of those who are refused the most, first', show: showState}),
                number('use', 'Use', row => row.hard_limit ? row.units_per_s / row.hard_limit : null,
                    'Units a second of the hard limit; the line marks the reservation',
                    {show: (cell, row) => this.showUse(cell, row)}),
                number('units', 'Units/s', row => row.units_per_s),
                number('reserved', 'Reserved', row => row.reserved ?? Infinity, 'Units a second', {text: row => units(row.reserved)}),
                number('limit', 'Hard limit', row => row.hard_limit ?? Infinity, 'Units a second', {text: row => units(row.hard_limit)}),
                number('requests', 'Requests/s', row => row.requests_per_s),
                number('refused', 'Refused/s', row => row.rejected_per_s, '', {show: showRefused}),
                number('held', 'Held', row => row.held, 'Requests that wait for credits now'),
                number('connections', 'Conns', row => row.connections, 'Client connections'),
                words('why', 'Why', row => row.whyText, {wide: true, show: showWhy}),
            ],
        });
    }

    update({tenants, hotkeys, status}) {
        const rows = tenants.tenants || [];
        for (const row of rows) {
            row.isExempt = isExempt(row);
            row.whyText = row.throttled || !isActive(row) || row.isExempt || row.hard_limit !== null && row.debt_units > 0 && row.debt_units >= row.hard_limit
                ? whyText(row, hotkeys) : '';
        }
        // What a bar without a limit of its own is drawn against.
        const largest = rows.map(row => Math.max(row.units_per_s || 0, row.reserved || 0));
        this.scale = status.node_capacity || Math.max(1, ...largest);
        this.table.update(rows);
    }

    /* Up to the reservation solid, above it, which is lent from the free pool, lighter; at the limit
       in the colour of a warning. Without a limit the bar's end is open. */
    showUse(cell, row) {
        const limited = typeof row.hard_limit === 'number';
        const full = limited ? Math.max(row.hard_limit, 1) : this.scale;
        const of = value => value / full * 100;
        const used = row.units_per_s || 0;
        const reserved = row.reserved === null ? Infinity : row.reserved || 0;
        const own = Math.min(used, reserved);
        const near = limited && of(used) >= NEAR_PERCENT ? ' near' : '';
        drawBar(cell, limited ? '' : 'open',
            [{className: 'own' + near, percent: of(own)},
             {className: 'lent' + near, percent: Math.min(of(used), 100) - of(own)}],
            reserved > 0 && of(reserved) < 100 ? [of(reserved)] : []);
    }
}

/* What sorts by state: those that somebody has taken out, then the throttled, by their refusals,
   then those above their limits. */
function urgency(row) {
    return (isActive(row) ? 0 : 1e12) + (row.throttled ? 1e11 : 0) + (row.isExempt ? 1e10 : 0) + (row.rejected_per_s || 0);
}

function showName(cell, row) {
    setText(cell, row.name);
    setTitle(cell, row.name + ' on upstream ' + row.upstream);
}

function showState(cell, row) {
    if (!cell.tagged) {
        cell.tagged = make('span');
        cell.append(cell.tagged);
    }
    if (!isActive(row)) {
        setTag(cell.tagged, 'warn', row.state);
    } else if (row.throttled) {
        setTag(cell.tagged, 'warn', 'throttled');
    } else if (row.isExempt) {
        setTag(cell.tagged, 'warn', 'above limit');
    } else {
        setTag(cell.tagged, 'ok', 'ok');
    }
}

function showRefused(cell, row) {
    setText(cell, count(row.rejected_per_s));
    cell.classList.toggle('strong', row.rejected_per_s > 0);
}

function showWhy(cell, row) {
    setText(cell, row.whyText);
    setHidden(cell, !row.whyText);
}
