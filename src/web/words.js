// words - what is the matter, in a sentence and in a list
// SPDX-License-Identifier: BSD-3-Clause
//
// Pure: from the server's answers to {level, sentence, items}. level is ok, warn or bad; an item is
// {level, who, text, per_s}. The worst comes first.

import {count, percent, plural} from './format.js';

const list = value => Array.isArray(value) ? value : [];
export const serversOf = upstream => list(upstream.servers);
export const isActive = tenant => !tenant.state || tenant.state === 'active';

const LEVELS = {ok: 0, warn: 1, bad: 2};

/* Keys of a tenant that are refused in part, the most refused first. */
function refusedKeys(hotkeys, tenant) {
    const seen = new Map();
    for (const key of list(hotkeys.keys)) {
        if (key.tenant === tenant && key.percent > 0 && !(seen.get(key.key)?.percent >= key.percent)) {
            seen.set(key.key, key);
        }
    }
    return [...seen.values()].sort((a, b) => b.percent - a.percent);
}

/* Why a tenant is throttled: [{code, text, per_s}], the most frequent first. */
export function reasons(tenant, hotkeys) {
    const why = list(tenant.why).map(reason => ({...reason})).sort((a, b) => (b.per_s || 0) - (a.per_s || 0));
    for (const reason of why) {
        if (reason.code === 'hot_key') {
            const keys = refusedKeys(hotkeys, tenant.name);
            reason.keys = keys.slice(0, 3).map(key => '“' + key.key + '” ' + percent(key.percent));
            reason.more = Math.max(0, keys.length - 3);
        }
    }
    return why;
}

export function reasonText(reason) {
    let text = reason.text || reason.code;
    if (reason.keys?.length) {
        text += ': ' + reason.keys.join(', ') + (reason.more ? ' and ' + reason.more + ' more' : '');
    }
    return reason.per_s ? text + ' (' + count(reason.per_s) + '/s)' : text;
}

export const whyText = (tenant, hotkeys) => reasons(tenant, hotkeys).map(reasonText).join('; ');

function itemsOfServer(status) {
    const items = [];
    if (status.state && status.state !== 'running') {
        items.push({level: 'bad', who: 'server', text: status.state === 'draining'
            ? 'is draining: it takes no new connections and will end' : 'is ' + status.state});
    }
    if (status.ready === false) {
        for (const reason of list(status.reasons)) {
            items.push({level: 'bad', who: 'not ready', text: reason});
        }
    }
    if (status.overcommitted) {
        items.push({level: 'warn', who: 'reservations', text: 'together exceed the node’s capacity: there is no free pool'});
    }
    return items;
}

function itemsOfUpstream(upstream) {
    const items = [];
    const servers = serversOf(upstream);
    if (upstream.alive === false) {
        items.push({level: 'bad', who: upstream.name, text: 'has no server that is up: its tenants’ requests fail'});
    }
    for (const server of servers) {
        if (server.breaker === 'open') {
            items.push({level: 'bad', who: upstream.name, text: 'breaker open: ' + server.address + ' is out, requests for its keys are refused'});
        } else if (server.breaker === 'half-open') {
            items.push({level: 'warn', who: upstream.name, text: 'breaker half-open: ' + server.address + ' is being tried again'});
        }
    }
    if (upstream.backlog) {
        items.push({level: 'warn', who: upstream.name, text: 'has a backlog: requests wait for tickets, the store cannot keep up'});
    }
    if (upstream.evicting > 0) {
        items.push({level: 'warn', who: upstream.name, text: plural(upstream.evicting, 'key that holds it up is', 'keys that hold it up are') + ' evicted'});
    }
    return items;
}

function itemsOfTenant(tenant, hotkeys) {
    const why = whyText(tenant, hotkeys);
    if (!isActive(tenant)) {
        return [{level: 'warn', who: tenant.name, tenant: true, per_s: tenant.rejected_per_s || 0,
                 text: why || 'is ' + tenant.state}];
    }
    return tenant.throttled ? [{level: 'warn', who: tenant.name, tenant: true, per_s: tenant.rejected_per_s || 0,
                                text: why || 'is throttled'}] : [];
}

/* Parts of the sentence: [number, one, many]. */
function countsOf({status, tenants, hotkeys, upstreams}) {
    const all = list(upstreams.upstreams), servers = all.flatMap(serversOf);
    const breakers = state => servers.filter(server => server.breaker === state).length;
    const active = list(tenants.tenants).filter(isActive);
    const state = name => list(tenants.tenants).filter(tenant => tenant.state === name).length;
    const keys = new Set(list(hotkeys.keys).filter(key => key.percent > 0).map(key => key.tenant + ' ' + key.key));
    return [
        [all.filter(upstream => upstream.alive === false).length, 'upstream is down', 'upstreams are down'],
        [active.filter(tenant => tenant.throttled).length, 'tenant is throttled', 'tenants are throttled'],
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

