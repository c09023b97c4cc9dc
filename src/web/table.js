// table - a table that is sorted and filtered, and stays calm while its rows change each second
// SPDX-License-Identifier: BSD-3-Clause
//
// Rows keep their elements as long as they are there, and only what has changed is written. While
// the pointer is over the rows, or the focus is among them, their order holds still: what one is
// about to click or read does not move. Of many rows the first are shown, and the others on demand.
//
// The rows are grids, so that they can be cards on a narrow screen (headgate.css); since that takes
// from a table what it is for those who do not see it, the roles are said.

import {make, setClass, setHidden, setStyle, setText, setTitle} from './dom.js';
import {count, plural} from './format.js';

const FEW = 6; // rows at first where each is a card
const MANY = 100; // rows: then the style leaves out those that are not in sight
const narrow = matchMedia('(max-width: 60rem)'); // as in headgate.css

const pointer = matchMedia('(hover: hover)'); // a finger does not hover, and what it touched stays so

const collator = new Intl.Collator('en', {numeric: true});

/* Missing values come last, whatever the direction. */
function compare(a, b, descending) {
    const noA = a === undefined || a === null, noB = b === undefined || b === null;
    if (noA || noB) {
        return noA - noB;
    }
    const order = typeof a === 'string' ? collator.compare(a, b) : a - b;
    return descending ? -order : order;
}

/* section: where it goes, after its title. options:
     name      what a row is, [one, many]
     columns   [{id, title, hint, number: is right-aligned and sorted the largest first,
                 value(row): what it is sorted by, show(cell, row): fills the cell, text: instead of
                 show: value as text, wide: a line of its own}]
     id(row)   what a row is known by
     text(row) what is filtered, in lower case
     sort      {column, descending} at first, with `then` (a, b) where that is equal
     limit     rows shown at first
     empty     said when there is none
     level(row) '', 'warn' or 'bad': the mark at its side
     only      {title, test(row)}: a checkbox that leaves only those */
export class Table {
    constructor(section, options) {
        this.options = options;
        this.sort = {...options.sort};
        this.rows = [];
        this.known = new Map(); // id -> {element, cells}
        this.order = [];
        this.all = false;
        this.section = section;
        this.makeTools(section);
        this.makeTable(section);
    }

    makeTools(section) {
        const title = section.querySelector('h2');
        this.filter = make('input', {type: 'search', placeholder: 'Filter  /', autocomplete: 'off',
                                     'aria-label': 'Filter ' + this.options.name[1]});
        this.filter.spellcheck = false;
        this.filter.addEventListener('input', () => this.draw(true));
        this.filter.addEventListener('keydown', event => {
            if (event.key === 'Escape' && this.filter.value) {
                this.filter.value = '';
                this.draw(true);
                event.preventDefault();
            }
        });
        this.count = make('span', 'muted count');
        const tools = make('div', 'tools', this.count);
        if (this.options.only) {
            this.only = make('input', {type: 'checkbox'});
            this.only.addEventListener('change', () => this.draw(true));
            tools.append(make('label', 'only', this.only, ' ' + this.options.only.title));
        }
        tools.append(this.filter);
        const head = make('div', 'head');
        title.replaceWith(head);
        head.append(title, tools);
    }

    makeTable(section) {
        this.heads = new Map();
        const row = make('tr', {role: 'row'});
        for (const column of this.options.columns) {
            const button = make('button', {type: 'button', title: column.hint || ''}, column.title);
            button.append(make('span', {className: 'arrow', 'aria-hidden': 'true'}));
            button.addEventListener('click', () => this.sortBy(column));
            const cell = make('th', {scope: 'col', role: 'columnheader', className: this.classOf(column)}, button);
            this.heads.set(column.id, cell);
            row.append(cell);
        }
        this.body = make('tbody', {role: 'rowgroup'});
        const title = section.querySelector('h2');
        this.table = make('table', {role: 'table', 'aria-labelledby': title.id},
            make('thead', {role: 'rowgroup'}, row), this.body);
        this.empty = make('p', 'muted empty');
        this.more = make('button', {type: 'button', className: 'more'});
        this.more.addEventListener('click', () => {
            this.all = !this.all;
            this.draw(true);
        });
        section.append(this.table, this.empty, this.more);
        this.showSort();
    }

    classOf(column) {
        return (column.number ? 'number ' : '') + (column.wide ? 'wide ' : '') + 'c-' + column.id;
    }

    sortBy(column) {
        const same = this.sort.column === column.id;
        this.sort = {column: column.id, descending: same ? !this.sort.descending : !!column.number};
        this.showSort();
        this.draw(true);
    }

    showSort() {
        for (const [id, cell] of this.heads) {
            const sorted = id === this.sort.column;
            cell.setAttribute('aria-sort', !sorted ? 'none' : this.sort.descending ? 'descending' : 'ascending');
        }
    }

    get isHeld() {
        return pointer.matches && this.body.matches(':hover') || this.body.contains(document.activeElement);
    }

    /* Rows in the order that is asked for, of those that pass the filter. */
    wanted() {
        const words = this.filter.value.toLowerCase().split(/\s+/).filter(Boolean);
        const {text, only, columns} = this.options;
        const found = this.rows.filter(row => {
            const where = words.length ? text(row).toLowerCase() : '';
            return words.every(word => where.includes(word)) && (!this.only?.checked || only.test(row));
        });
        const column = columns.find(one => one.id === this.sort.column);
        const then = this.options.sort.then || (() => 0);
        return found.map(row => [column.value(row), row])
            .sort(([a, x], [b, y]) => compare(a, b, this.sort.descending) || then(x, y))
            .map(([, row]) => row);
    }

    update(rows) {
        this.rows = rows;
        this.draw(false);
    }

    draw(asked) {
        const {id, name, empty} = this.options;
        const limit = narrow.matches ? Math.min(FEW, this.options.limit) : this.options.limit;
        const wanted = this.wanted();
        let shown = this.all ? wanted : wanted.slice(0, limit);
        if (!asked && this.isHeld) {
            const places = new Map(this.order.map((known, place) => [known, place]));
            shown = wanted.filter(row => places.has(id(row)))
                .sort((a, b) => places.get(id(a)) - places.get(id(b)));
            shown = shown.concat(wanted.filter(row => !places.has(id(row)))).slice(0, this.all ? undefined : limit);
        }
        this.order = shown.map(id);
        setClass(this.body, shown.length > MANY ? 'many' : '');
        this.place(shown);
        const filtered = wanted.length !== this.rows.length;
        setText(this.count, filtered ? wanted.length + ' of ' + plural(this.rows.length, ...name)
                                     : this.rows.length ? plural(this.rows.length, ...name) : '');
        setHidden(this.table, !wanted.length);
        setHidden(this.empty, !!wanted.length);
        setText(this.empty, filtered ? 'Nothing that the filter lets through.' : empty);
        setHidden(this.more, wanted.length <= limit);
        setText(this.more, this.all ? 'Show the first ' + limit : 'Show all ' + wanted.length);
    }

    /* Makes the body what is shown: new ones are made, those in place are left there. */
    place(shown) {
        const before = this.known;
        this.known = new Map();
        let next = this.body.firstElementChild;
        for (const row of shown) {
            const id = this.options.id(row);
            const known = before.get(id) || this.makeRow();
            before.delete(id);
            this.known.set(id, known);
            if (known.element === next) {
                next = next.nextElementSibling;
            } else {
                this.body.insertBefore(known.element, next);
            }
            this.fill(known, row);
        }
        for (const {element} of before.values()) {
            element.remove();
        }
    }

    makeRow() {
        const cells = this.options.columns.map(column => make('td', {
            role: 'cell', className: this.classOf(column), 'data-name': column.title}));
        return {element: make('tr', {role: 'row'}, ...cells), cells};
    }

    fill({element, cells}, row) {
        setClass(element, this.options.level?.(row) || '');
        this.options.columns.forEach((column, i) => {
            if (column.show) {
                column.show(cells[i], row);
            } else {
                setText(cells[i], column.text(row));
                if (!column.number) {
                    setTitle(cells[i], column.text(row)); // it may be cut
                }
            }
        });
    }
}

/* Columns: of a text, or a name that `show` fills in; of a number, the largest first. `more`: the
   other fields of a column, or others in their place. */
export const words = (id, title, value, more = {}) => ({id, title, value, text: value, ...more});

export const number = (id, title, value, hint = '', more = {}) => (
    {id, title, value, hint, number: true, text: row => count(value(row)), ...more});

/* A bar in a cell. parts: [{className, percent}], marks: [percent]. It is for the eye; what it says
   is in the cells beside it. */
export function drawBar(cell, className, parts, marks = []) {
    if (!cell.bar) {
        cell.bar = make('div', {'aria-hidden': 'true'});
        cell.append(cell.bar);
    }
    const bar = cell.bar;
    setClass(bar, 'meter ' + className);
    while (bar.children.length > parts.length + marks.length) {
        bar.lastChild.remove();
    }
    while (bar.children.length < parts.length + marks.length) {
        bar.append(make('i'));
    }
    const bound = value => Math.max(0, Math.min(100, value || 0)).toFixed(1) + '%';
    parts.forEach((part, i) => {
        setClass(bar.children[i], part.className);
        setStyle(bar.children[i], 'left', '');
        setStyle(bar.children[i], 'width', bound(part.percent));
    });
    marks.forEach((mark, i) => {
        const node = bar.children[parts.length + i];
        setClass(node, 'mark');
        setStyle(node, 'width', '');
        setStyle(node, 'left', bound(mark));
    });
}
