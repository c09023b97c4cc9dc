// words - what is the matter, in a sentence and in a list
// SPDX-License-Identifier: BSD-3-Clause
//
// Pure: from the server's answers to {level, sentence, items}. level is ok, warn or bad; an item is
// {level, tag, who, text, per_s}. The worst comes first.

import {clock, count, keyName, percent, plural} from './format.js';

const list = value => Array.isArray(value) ? value : [];
export const serversOf = upstream => list(upstream.servers);
export const isActive = tenant => !tenant.state || tenant.state === 'active';

/* Above its hard limit, for the sake of users whom nothing holds. */
export const isExempt = tenant => list(tenant.why).some(reason => reason.code === 'exempt');

const LEVELS = {ok: 0, warn: 1, bad: 2};

/* Keys of a tenant that are refused in part, the most refused first. */
function refusedKeys(hotkeys, tenant) {
    const seen = new Map();
    for (const key of list(hotkeys.keys)) {
        if (key.tenant === tenant && key.percent > 0 && !(seen.get(keyName(key))?.percent >= key.percent)) {
            seen.set(keyName(key), key);
        }
    }
    return [...seen.values()].sort((a, b) => b.percent - a.percent);
}

/* Why a tenant is throttled: [{code, text, per_s}], the most frequent first, and what the store does
   to it at the end. */
export function reasons(tenant, hotkeys) {
    const why = list(tenant.why).map(reason => ({...reason})).sort(
        (a, b) => (a.code === 'backend') - (b.code === 'backend') || (b.per_s || 0) - (a.per_s || 0));
    for (const reason of why) {
        if (reason.code === 'hot_key') {
            const keys = refusedKeys(hotkeys, tenant.name);
            reason.keys = keys.slice(0, 3).map(key => '“' + keyName(key) + '” ' + percent(key.percent));
            reason.more = Math.max(0, keys.length - 3);
        }
    }
    return why;
}

export function reasonText(reason) {
    let text = reason.text || reason.code;
    if (reason.code === 'exempt') {
        text = 'above its limit: exempt users (' + text + ')';
    }
    if (reason.keys?.length) {
        text += ', now ' + reason.keys.join(', ') + (reason.more ? ' and ' + reason.more + ' more' : '');
    }
    return reason.per_s ? text + ' (' + count(reason.per_s) + '/s)' : text;
}

export const whyText = (tenant, hotkeys) => reasons(tenant, hotkeys).map(reasonText).concat(debtText(tenant)).join('; ');

/* What it owes. Large requests leave a small debt behind that is gone with the next slot: of a
   tenant that is well only one of a second or more is said. */
function debtText(tenant) {
    const {debt_units: debt, hard_limit: limit} = tenant;
    const matters = tenant.throttled || isExempt(tenant) || limit !== null && debt >= limit;
    return debt > 0 && matters ? ['in debt: ' + plural(debt, 'unit', 'units')] : [];
}

function itemsOfServer(status) {
    const items = [];
    if (status.state && status.state !== 'running') {
        items.push({level: 'bad', tag: status.state, who: 'server', text: status.state === 'draining'
            ? 'takes no new connections, and ends when the open ones have' : 'is ' + status.state});
    }
    if (status.ready === false) {
        for (const reason of list(status.reasons)) {
            items.push({level: 'bad', tag: 'not ready', who: 'server', text: reason});
        }
    }
    if (status.overcommitted) {
        items.push({level: 'warn', tag: 'overcommitted', who: 'reservations',
                    text: 'exceed the node’s capacity together: there is no free pool'});
    }
    return items;
}

function itemsOfUpstream(upstream) {
    const items = [], who = upstream.name;
    if (upstream.alive === false) {
        items.push({level: 'bad', tag: 'down', who, text: 'no server is up, its tenants’ requests fail'});
    }
    for (const server of serversOf(upstream)) {
        if (server.breaker === 'open') {
            items.push({level: 'bad', tag: 'breaker open', who,
                        text: server.address + ' is out, requests for its keys are refused'});
        } else if (server.breaker === 'half-open') {
            items.push({level: 'warn', tag: 'half-open', who, text: server.address + ' was out and is being tried'});
        }
    }
    if (upstream.backlog) {
        items.push({level: 'warn', tag: 'backlog', who, text: 'the store cannot keep up, requests wait for tickets'});
    }
    if (upstream.evicting > 0) {
        items.push({level: 'warn', tag: 'evicting', who,
                    text: 'requests for ' + plural(upstream.evicting, 'key that holds', 'keys that hold') + ' it up are refused'});
    }
    return items;
}

function itemsOfTenant(tenant, hotkeys) {
    if (isActive(tenant) && !tenant.throttled && !isExempt(tenant)) {
        return [];
    }
    const state = !isActive(tenant) ? tenant.state : tenant.throttled ? 'throttled' : 'above limit';
    const since = tenant.since ? ', since ' + clock(tenant.since) : '';
    return [{level: 'warn', tag: state, who: tenant.name, per_s: tenant.rejected_per_s || 0,
             text: (whyText(tenant, hotkeys) || 'is ' + state) + since}];
}

/* Parts of the sentence: [number, one, many]. */
function countsOf({status, tenants, hotkeys, upstreams}) {
    const all = list(upstreams.upstreams), servers = all.flatMap(serversOf);
    const breakers = state => servers.filter(server => server.breaker === state).length;
    const active = list(tenants.tenants).filter(isActive);
    const state = name => list(tenants.tenants).filter(tenant => tenant.state === name).length;
    const keys = new Set(list(hotkeys.keys).filter(key => key.percent > 0).map(key => key.tenant + ' ' + keyName(key)));
    return [
        [all.filter(upstream => upstream.alive === false).length, 'upstream is down', 'upstreams are down'],
        [active.filter(tenant => tenant.throttled).length, 'tenant is throttled', 'tenants are throttled'],
        [active.filter(tenant => isExempt(tenant)).length, 'tenant is above its hard limit', 'tenants are above their hard limits'],
        [breakers('open'), 'breaker is open', 'breakers are open'],
        [breakers('half-open'), 'breaker is half-open', 'breakers are half-open'],
        [keys.size, 'hot key is refused in part', 'hot keys are refused in part'],
        [all.filter(upstream => upstream.backlog).length, 'upstream has a backlog', 'upstreams have a backlog'],
        [state('paused'), 'tenant is paused', 'tenants are paused'],
        [state('disabled'), 'tenant is disabled', 'tenants are disabled'],
    ].filter(([number]) => number > 0).map(([number, one, many]) => plural(number, one, many));
}

export function judge(parts) {
    const items = [
        ...itemsOfServer(parts.status),
        ...list(parts.upstreams.upstreams).flatMap(itemsOfUpstream),
        ...list(parts.tenants.tenants).flatMap(tenant => itemsOfTenant(tenant, parts.hotkeys)),
    ];
    items.sort((a, b) => LEVELS[b.level] - LEVELS[a.level] || (b.per_s || 0) - (a.per_s || 0));
    const counts = countsOf(parts);
    if (parts.status.state && parts.status.state !== 'running') {
        counts.unshift('the server is ' + parts.status.state);
    }
    if (!counts.length && parts.status.overcommitted) {
        counts.push('the reservations exceed the capacity');
    }
    if (!counts.length && parts.status.ready === false) {
        counts.push('the server is not ready');
    }
    const text = counts.join(', ');
    return {
        items,
        level: items[0]?.level || (text ? 'warn' : 'ok'),
        sentence: text ? text[0].toUpperCase() + text.slice(1) + '.' : 'Nobody is throttled, every server is up.',
    };
}

