// format - numbers, times and names as a person reads them
// SPDX-License-Identifier: BSD-3-Clause
//
// What is missing, since another version answers, or not known yet, is a dash.

const whole = new Intl.NumberFormat('en', {maximumFractionDigits: 0});
const tenth = new Intl.NumberFormat('en', {maximumFractionDigits: 1});
const clockOf = new Intl.DateTimeFormat('en-GB', {hour: '2-digit', minute: '2-digit', second: '2-digit'});

export const NONE = '–';
const isNumber = value => typeof value === 'number' && Number.isFinite(value);

/* 950, 12,345, 1.2 M, 3.4 G */
export function count(value) {
    if (!isNumber(value)) {
        return NONE;
    }
    const size = Math.abs(value);
    if (size >= 1e9) {
        return tenth.format(value / 1e9) + ' G';
    }
    if (size >= 1e6) {
        return tenth.format(value / 1e6) + ' M';
    }
    return size < 10 ? tenth.format(value) : whole.format(value);
}

/* Units a second of a setting: null means that there is no bound. */
export const units = value => value === null ? 'unlimited' : count(value);

export const percent = value => isNumber(value) ? tenth.format(value) + ' %' : NONE;

/* 1 tenant, 2 tenants */
export const plural = (number, one, many) => count(number) + ' ' + (number === 1 ? one : many);

export function microseconds(value) {
    if (!isNumber(value)) {
        return NONE;
    }
    if (value < 1000) {
        return whole.format(value) + ' µs';
    }
    if (value < 1e6) {
        return (value < 1e4 ? tenth : whole).format(value / 1000) + ' ms';
    }
    return tenth.format(value / 1e6) + ' s';
}

/* 12 s, 3 min 12 s, 4 h 3 min, 5 d 4 h */
export function duration(seconds) {
    if (!isNumber(seconds)) {
        return NONE;
    }
    const s = Math.max(0, Math.floor(seconds));
    const parts = [[86400, 'd'], [3600, 'h'], [60, 'min'], [1, 's']];
    const first = parts.findIndex(([size]) => s >= size);
    if (first < 0) {
        return '0 s';
    }
    const [[size, unit], next] = [parts[first], parts[first + 1]];
    const rest = next ? Math.floor(s % size / next[0]) : 0;
    return Math.floor(s / size) + ' ' + unit + (rest ? ' ' + rest + ' ' + next[1] : '');
}

/* Time of day here, of a time in seconds. */
export const clock = seconds => isNumber(seconds) ? clockOf.format(new Date(seconds * 1000)) : NONE;

/* TABLE_HOTKEY_QUERY: query */
export const kind = type => String(type).replace(/^.*HOTKEY_/, '').toLowerCase();

/* A key as it is called: that of a row with its table before it. */
export const keyName = row => (row.table ? row.table + ' › ' : '') + row.key;

export const bytes = value => {
    if (!isNumber(value)) {
        return NONE;
    }
    const step = value >= 1 << 30 ? [1 << 30, 'GiB'] : value >= 1 << 20 ? [1 << 20, 'MiB'] : [1024, 'KiB'];
    return tenth.format(value / step[0]) + ' ' + step[1];
};
