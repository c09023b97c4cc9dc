// charts - the last ten minutes as lines, one cursor for all of them
// SPDX-License-Identifier: BSD-3-Clause
//
// uPlot draws; names and values stand in a list of ours, as text. A line is known by its dashes as
// well as by its colour. A chart that has the focus moves the cursor by keys.

/* global uPlot */
import {make, setStyle, setText} from './dom.js';
import {clock, count, microseconds} from './format.js';
import {SPAN_S} from './history.js';

const HEIGHT_PX = 112;
const LINES = 5; // tenants in a chart: more cannot be told apart
const DASHES = [[], [7, 3], [2, 2], [9, 3, 2, 3], [4, 4]];
const MEAN_S = 3;  // units come in bursts of a slot of up to a second
const CURSOR = 'headgate';
const LEAST = 5;   // top of a scale where there is next to nothing, so that it lies at the bottom
const ROOM = 1.08; // above the highest

const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/* What there is to see. lines(history, what was chosen, who had which colour):
   [{name, colour: a property of the style, dash, values}]. */
const CHARTS = [
    {title: 'Requests/s', format: count, lines: history => plain(history, [
        ['served', 'served_per_s', '--line-1', 0],
        ['throttled', 'throttled_per_s', '--line-2', 1], ['failed', 'failed_per_s', '--line-3', 2]])},
    {title: 'Latency', format: microseconds, least: 1000, lines: history => plain(history, [
        ['p50', 'p50_us', '--line-1', 0], ['p99', 'p99_us', '--line-4', 1]])},
    {title: 'Waiting', format: count, band: history => history.series.backlog, note: 'shaded: a backlog',
     lines: history => plain(history, [
        ['held for credits', 'held', '--line-2', 0], ['in line for tickets', 'queued', '--line-4', 1]])},
    {title: 'Tickets', format: count, choose: 'upstreams', by: 'out', lines: (history, chosen) => tickets(history, chosen)},
    {title: 'Units/s of the busiest tenants', format: count, note: 'mean of ' + MEAN_S + ' s',
     lines: (history, chosen, slots) => tenants(history, slots, 'units_per_s', mean)},
    {title: 'Refused/s, by tenant', format: count,
     lines: (history, chosen, slots) => tenants(history, slots, 'rejected_per_s')},
];

function plain(history, rows) {
    return rows.map(([name, field, colour, dash]) => ({name, colour, dash, values: history.series[field] || []}));
}

function tickets(history, chosen) {
    const set = history.groups.upstreams[chosen] || {};
    return [['for reads', 'read_tickets', '--line-1', 2], ['for writes', 'write_tickets', '--line-5', 2],
            ['out', 'out', '--line-4', 0], ['in line', 'queued', '--line-2', 1]].map(
        ([name, field, colour, dash]) => ({name, colour, dash, values: set[field] || []}));
}

/* The busiest; each keeps its colour as long as it is one of them. `slots`: who had which. */
function tenants(history, slots, field, change = values => values) {
    const busiest = history.busiest('tenants', field, LINES);
    slots.forEach((name, i) => {
        if (!busiest.includes(name)) {
            delete slots[i];
        }
    });
    for (const name of busiest.filter(one => !slots.includes(one))) {
        slots[Array.from({length: LINES}, (_, i) => i).find(i => !(i in slots))] = name;
    }
    return busiest.map(name => [name, slots.indexOf(name)]).sort((a, b) => a[1] - b[1]).map(([name, slot]) => (
        {name, colour: '--line-' + (slot + 1), dash: slot,
         values: change(history.groups.tenants[name][field] || [])}));
}

function mean(values) {
    return values.map((value, i) => {
        const near = values.slice(Math.max(0, i - MEAN_S + 1), i + 1).filter(one => one !== null);
        return value === null ? null : near.reduce((sum, one) => sum + one, 0) / near.length;
    });
}

class Chart {
    /* moveTo(time): puts the cursor of all charts there; null takes it away. */
    constructor(parent, what, moveTo) {
        this.what = what;
        this.moveTo = moveTo;
        this.lines = [];
        this.slots = []; // of tenants, by colour
        this.values = make('ul', 'legend');
        this.place = make('div', 'plot');
        this.at = make('span', 'muted at');
        const head = make('p', 'charthead', make('strong', '', what.title), this.at);
        if (what.choose) {
            this.select = make('select', {'aria-label': 'Upstream of the tickets'});
            this.select.addEventListener('change', () => this.draw(this.history));
            head.append(this.select);
        }
        if (what.note) {
            head.append(make('span', 'muted', what.note));
        }
        this.element = make('figure', {
            className: 'chart', tabIndex: 0, role: 'group', 'aria-label': what.title + ', last 10 minutes',
        }, head, this.values, this.place);
        this.element.addEventListener('keydown', event => this.onKey(event));
        parent.append(this.element);
        new ResizeObserver(() => this.resize()).observe(this.place);
    }

    resize() {
        const width = Math.floor(this.place.clientWidth);
        if (this.plot && width > 0 && width !== this.plot.width) {
            this.plot.setSize({width, height: HEIGHT_PX});
        }
    }

    draw(history) {
        this.history = history;
        if (this.select) {
            this.fillSelect(Object.keys(history.groups.upstreams));
        }
        const lines = this.what.lines(history, this.select?.value, this.slots);
        // Only other lines need a new plot; uPlot's series are fixed.
        const names = lines.map(line => line.colour + line.name).join('\n');
        this.lines = lines;
        if (!this.plot || names !== this.names) {
            this.names = names;
            this.remake();
        }
        const end = history.time[history.time.length - 1];
        this.plot.batch(() => {
            this.plot.setData([history.time, ...lines.map(line => line.values)], false);
            if (end !== undefined) {
                this.plot.setScale('x', {min: end - SPAN_S, max: end});
            }
        });
        this.showValues();
    }

    fillSelect(names) {
        if (names.join('\n') !== this.choices) {
            const chosen = this.select.value;
            this.choices = names.join('\n');
            this.select.replaceChildren(...names.map(name => make('option', {value: name}, name)));
            this.select.value = names.includes(chosen) ? chosen
                : this.history.busiest('upstreams', this.what.by, 1)[0] ?? '';
        }
        this.select.hidden = names.length < 2;
    }

    remake() {
        this.plot?.destroy();
        this.values.replaceChildren(...this.lines.map(line => {
            const mark = make('i', {className: 'dash dash-' + line.dash, 'aria-hidden': 'true'});
            setStyle(mark, 'borderTopColor', 'var(' + line.colour + ')');
            line.label = make('b');
            return make('li', '', mark, make('span', {className: 'name', title: line.name}, line.name), line.label);
        }));
        if (!this.lines.length) {
            this.values.append(make('li', 'muted', 'nobody'));
        }
        this.labels = this.lines.map(line => line.label);
        this.plot = new uPlot(this.options(), [[], ...this.lines.map(() => [])], this.place);
    }

    options() {
        const axis = {stroke: () => css('--muted'), font: '11px system-ui, sans-serif',
                      grid: {stroke: () => css('--grid'), width: 1}, ticks: {show: false}};
        return {
            width: Math.max(50, Math.floor(this.place.clientWidth)), height: HEIGHT_PX,
            legend: {show: false}, padding: [6, 8, 0, 0],
            cursor: {y: false, drag: {x: false, y: false}, sync: {key: CURSOR}, points: {size: 6}},
            scales: {x: {time: true}, y: {range: (u, min, max) => [0, Math.max(max * ROOM, this.what.least || LEAST)]}},
            axes: [{...axis, size: 22, space: 70, values: (u, times) => times.map(time => clock(time).slice(0, 5))},
                   {...axis, size: 58, space: 28, values: (u, values) => values.map(this.what.format)}],
            series: [{}, ...this.lines.map(line => ({
                stroke: () => css(line.colour), width: 1.5, dash: DASHES[line.dash], points: {show: false}}))],
            hooks: {setCursor: [() => this.showValues()], drawClear: [u => this.drawBand(u)]},
        };
    }

    /* The time of a backlog, behind the lines. */
    drawBand(u) {
        const band = this.what.band?.(this.history);
        if (!band) {
            return;
        }
        u.ctx.save();
        u.ctx.fillStyle = css('--band');
        band.forEach((value, i) => {
            const time = this.history.time[i];
            if (value > 0 && time > u.scales.x.min) {
                const left = u.valToPos(time - 1, 'x', true), right = u.valToPos(time, 'x', true);
                u.ctx.fillRect(Math.max(left, u.bbox.left), u.bbox.top, right - Math.max(left, u.bbox.left), u.bbox.height);
            }
        });
        u.ctx.restore();
    }

    /* The values at the cursor, or the newest. */
    showValues() {
        const idx = this.plot?.cursor.idx;
        const under = idx !== null && idx !== undefined && this.plot.cursor.left >= 0;
        const times = this.history?.time || [];
        const place = under ? idx : times.length - 1;
        this.labels.forEach((label, i) => setText(label, this.what.format(this.lines[i]?.values[place])));
        setText(this.at, under && times[place] ? 'at ' + clock(times[place]) : '');
    }

    onKey(event) {
        const step = {ArrowLeft: -1, ArrowRight: 1, Home: -SPAN_S, End: SPAN_S}[event.key];
        const times = this.history?.time || [];
        if (!step || event.target !== this.element || !times.length || event.ctrlKey || event.altKey || event.metaKey) {
            return;
        }
        event.preventDefault();
        const now = this.plot.cursor.left >= 0 ? this.plot.cursor.idx ?? times.length : times.length;
        const to = Math.max(0, Math.min(times.length - 1, now + step * (event.shiftKey ? 10 : 1)));
        this.moveTo(times[to]);
    }

    putCursor(time) {
        this.plot?.setCursor(time === null ? {left: -10, top: -10}
            : {left: this.plot.valToPos(time, 'x'), top: 1});
    }

    /* Colours have changed. */
    redraw() {
        this.plot?.redraw(false);
    }
}

export class Charts {
    constructor(section) {
        const grid = make('div', 'chartgrid');
        section.append(grid);
        const moveTo = time => this.charts.forEach(chart => chart.putCursor(time));
        this.charts = CHARTS.map(what => new Chart(grid, what, moveTo));
        section.addEventListener('focusout', event => {
            if (!section.contains(event.relatedTarget)) {
                moveTo(null);
            }
        });
        matchMedia('(prefers-color-scheme: dark)').addEventListener(
            'change', () => this.charts.forEach(chart => chart.redraw()));
    }

    update(history) {
        this.charts.forEach(chart => chart.draw(history));
    }
}
