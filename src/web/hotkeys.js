// hotkeys - the hottest keys of each tenant and kind of operation in the last epoch
// SPDX-License-Identifier: BSD-3-Clause

import {make, setText, setTitle} from './dom.js';
import {count, kind, percent, NONE} from './format.js';
import {drawBar, Table} from './table.js';

export class HotKeys {
    constructor(section) {
        this.note = make('p', 'muted note');
        this.table = new Table(section, {
            name: ['hot key', 'hot keys'],
            id: row => JSON.stringify([row.tenant, row.type, row.table, row.key]),
            text: row => [row.tenant, row.kind, row.key, row.percent > 0 ? 'refused' : ''].join(' '),
            limit: 15,
            empty: 'No key is hot.',
            only: {title: 'refused', test: row => row.percent > 0},
            level: row => row.percent > 0 ? 'warn' : '',
            sort: {column: 'percent', descending: true, then: (a, b) => b.count - a.count || a.rank - b.rank},
            columns: [
                {id: 'key', title: 'Key', value: row => row.key, show: showKey},
                {id: 'tenant', title: 'Tenant', value: row => row.tenant, text: row => row.tenant},
                {id: 'type', title: 'Type', hint: 'Kind of operation', value: row => row.kind, text: row => row.kind},
                {id: 'rank', title: 'Rank', number: true, value: row => -row.rank, text: row => count(row.rank)},
                {id: 'count', title: 'Ops', hint: 'Operations of the key in the epoch', number: true, value: row => row.count, text: row => count(row.count)},
                {id: 'threshold', title: 'Threshold', hint: 'Operations in an epoch above which a key is throttled; 0: never', number: true,
                 value: row => row.threshold, text: row => row.threshold ? count(row.threshold) : 'none'},
                {id: 'share', title: 'Share', hint: 'Of its tenant’s operations of the epoch', number: true, value: row => row.share_percent,
                 show: (cell, row) => showPercent(cell, row.share_percent, 'share')},
                {id: 'percent', title: 'Refused', hint: 'How many of its operations are refused', number: true, value: row => row.percent,
                 show: (cell, row) => showPercent(cell, row.percent, 'refused')},
            ],
        });
        section.querySelector('.head').after(this.note);
    }

    update({hotkeys}) {
        const rows = hotkeys.keys || [];
        for (const row of rows) {
            row.kind = kind(row.type);
        }
        setText(this.note, 'Epoch ' + (hotkeys.epoch ?? NONE) + ', ' + count(hotkeys.epoch_ms / 1000) + ' s long');
        this.table.update(rows);
    }
}

/* A long key is cut by the style; its whole is in the title, and shown when it is clicked. */
function showKey(cell, row) {
    if (!cell.button) {
        cell.button = make('button', {type: 'button', className: 'key', 'aria-expanded': 'false'});
        cell.button.addEventListener('click', () => {
            const whole = cell.button.classList.toggle('whole');
            cell.button.setAttribute('aria-expanded', String(whole));
        });
        cell.append(cell.button);
    }
    setText(cell.button, row.key);
    setTitle(cell.button, row.key);
}

function showPercent(cell, value, className) {
    if (!cell.label) {
        cell.label = make('span');
        cell.append(cell.label);
    }
    setText(cell.label, percent(value));
    drawBar(cell, 'small', [{className, percent: value}]);
}
