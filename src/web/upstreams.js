// upstreams - the stores: breakers, connections of the pool, tickets
// SPDX-License-Identifier: BSD-3-Clause

import {make, setHidden, setTag, setText, setTitle} from './dom.js';
import {bytes, count, plural} from './format.js';
import {drawBar, number, Table, words} from './table.js';
import {serversOf} from './words.js';

/* From well to worst. */
const BREAKERS = {closed: 'ok', 'half-open': 'warn', open: 'bad'};

export class Upstreams {
    constructor(section) {
        this.cards = make('ul', 'upstreams');
        this.known = new Map();
        this.table = new Table(section, {
            name: ['server', 'servers'],
            id: row => row.upstream + ' ' + row.address,
            text: row => [row.upstream, row.kind, row.address, row.breaker, row.last_error || ''].join(' '),
            limit: 15,
            empty: 'No server.',
            level: row => row.breaker === 'open' ? 'bad' : row.breaker === 'half-open' ? 'warn' : '',
            sort: {column: 'breaker', descending: true,
                   then: (a, b) => a.upstream < b.upstream ? -1 : a.upstream > b.upstream ? 1 : 0},
            columns: [
                words('address', 'Server', row => row.address, {show: showAddress}),
                words('upstream', 'Upstream', row => row.upstream),
                words('breaker', 'Breaker', row => Object.keys(BREAKERS).indexOf(row.breaker), {show: showBreaker}),
                number('requests', 'Requests/s', row => row.requests_per_s),
                number('errors', 'Errors/s', row => row.errors_per_s, '', {show: showErrors}),
                number('connections', 'Conns', row => row.connections, 'Connections of the pool that are open'),
                number('pending', 'Pending', row => row.pending, 'Requests that are with the server'),
                number('waiting', 'Waiting', row => row.waiting, 'Requests that wait for a connection'),
                words('error', 'Last error', row => row.last_error || '', {wide: true, show: showLastError}),
            ],
        });
        section.querySelector('.head').after(this.cards);
    }

    update({upstreams}) {
        const all = upstreams.upstreams || [];
        this.updateCards(all);
        this.table.update(all.flatMap(upstream => serversOf(upstream).map(
            server => ({...server, upstream: upstream.name, kind: upstream.kind}))));
    }

    updateCards(all) {
        const before = this.known;
        this.known = new Map();
        for (const upstream of all) {
            const card = before.get(upstream.name) || makeCard();
            before.delete(upstream.name);
            this.known.set(upstream.name, card);
            if (!card.element.parentNode) {
                this.cards.append(card.element);
            }
            fillCard(card, upstream);
        }
        for (const card of before.values()) {
            card.element.remove();
        }
    }
}

function makeCard() {
    const card = {name: make('strong'), state: make('span'), about: make('span', 'muted'), tickets: {}};
    card.element = make('li', '', make('p', '', card.name, ' ', card.state, ' ', card.about));
    for (const what of ['read', 'write']) {
        const row = {text: make('span'), cell: make('span', 'cell')};
        card.tickets[what] = row;
        card.element.append(make('p', 'tickets', make('span', 'muted', what + ' tickets'), row.cell, row.text));
    }
    return card;
}

function fillCard(card, upstream) {
    setText(card.name, upstream.name);
    if (upstream.alive === false) {
        setTag(card.state, 'bad', 'down');
    } else if (upstream.backlog) {
        setTag(card.state, 'warn', 'backlog');
    } else if (serversOf(upstream).some(server => server.breaker === 'open')) {
        setTag(card.state, 'warn', 'in part');
    } else {
        setTag(card.state, 'ok', 'up');
    }
    const notes = [upstream.kind];
    if (upstream.control) {
        notes.push(upstream.control);
    }
    if (upstream.evicting) {
        notes.push(plural(upstream.evicting, 'key evicted', 'keys evicted'));
    }
    for (const server of serversOf(upstream)) {
        if (server.max_bytes) { // an embedded store's file
            notes.push(bytes(server.used_bytes) + ' of ' + bytes(server.max_bytes),
                count(server.items) + ' items');
        }
    }
    setText(card.about, notes.join(', '));
    for (const [what, row] of Object.entries(card.tickets)) {
        const {total, out, queued} = upstream.tickets?.[what] || {};
        setText(row.text, count(out) + ' of ' + count(total) + (queued ? ', ' + count(queued) + ' in line' : ''));
        drawBar(row.cell, '', [{className: 'own' + (queued ? ' near' : ''), percent: total ? out / total * 100 : 0}]);
    }
}

function showAddress(cell, row) {
    setText(cell, row.address);
    setTitle(cell, row.address);
}

function showBreaker(cell, row) {
    if (!cell.tagged) {
        cell.tagged = make('span');
        cell.append(cell.tagged);
    }
    setTag(cell.tagged, BREAKERS[row.breaker] || 'calm', row.breaker || 'none');
}

function showErrors(cell, row) {
    setText(cell, count(row.errors_per_s));
    cell.classList.toggle('strong', row.errors_per_s > 0);
}

/* Why the last connection could not be made; nothing once one was. */
function showLastError(cell, row) {
    setText(cell, row.last_error ? 'no connection: ' + row.last_error : '');
    setHidden(cell, !row.last_error);
}
