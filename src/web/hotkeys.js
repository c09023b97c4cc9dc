// hotkeys - the hottest keys of each tenant and kind of operation in the last epoch
// SPDX-License-Identifier: BSD-3-Clause

import {make, setText, setTitle} from './dom.js';
import {count, keyName, kind, percent, NONE} from './format.js';
import {drawBar, number, Table, words} from './table.js';

export class HotKeys {
    constructor(section) {
        this.note = make('p', 'muted note');
        this.table = new Table(section, {
            name: ['hot key', 'hot keys'],
            id: row => JSON.stringify([row.tenant, row.type, row.table, row.key]),
            text: row => [row.tenant, row.kind, row.name, row.percent > 0 ? 'refused' : ''].join(' '),
            limit: 15,
            empty: 'No key is hot.',
            only: {title: 'refused', test: row => row.percent > 0},
            level: row => row.percent > 0 ? 'warn' : '',
            sort: {column: 'percent', descending: true, then: (a, b) => b.count - a.count || a.rank - b.rank},
            columns: [
                words('key', 'Key', row => row.name, {show: showKey}),
                words('tenant', 'Tenant', row => row.tenant),
                words('type', 'Type', row => row.kind, {hint: 'Kind of operation'}),
                number('rank', 'Rank', row => -row.rank, 'In its tenant and type', {text: row => count(row.rank)}),
                number('count', 'Ops', row => row.count, 'Operations of the key in the epoch'),
                number('threshold', 'Threshold', row => row.threshold,
                    'Operations in an epoch above which a key is throttled; none: it never is',
                    {text: row => row.threshold ? count(row.threshold) : 'none'}),
                number('share', 'Share', row => row.share_percent, 'Of its tenant’s operations of the epoch',
                    {show: (cell, row) => showPercent(cell, row.share_percent, 'share')}),
                number('percent', 'Refused', row => row.percent, 'How many of its operations are refused',
                    {show: (cell, row) => showPercent(cell, row.percent, 'refused')}),
            ],
        });
        section.querySelector('.head').after(this.note);
    }

    update({hotkeys}) {
        const rows = hotkeys.keys || [];
        for (const row of rows) {
            row.kind = kind(row.type);
            row.name = keyName(row);
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
    setText(cell.button, row.name);
    setTitle(cell.button, row.name);
}

function showPercent(cell, value, className) {
    if (!cell.label) {
        cell.label = make('span');
        cell.append(cell.label);
    }
    setText(cell.label, percent(value));
    drawBar(cell, 'small', [{className, percent: value}]);
}
