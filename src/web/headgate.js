// headgate - the dashboard: asks, judges, shows
// SPDX-License-Identifier: BSD-3-Clause
//
// poll.js asks the server, history.js keeps ten minutes of it, words.js says what is the matter, and
// each section has a module that shows it. Nothing comes from elsewhere; texts are never markup.

import {Charts} from './charts.js';
import {byId, make, setClass, setHidden, setTag, setText, setTitle} from './dom.js';
import {clock, duration, plural} from './format.js';
import {History} from './history.js';
import {HotKeys} from './hotkeys.js';
import {listenToKeys} from './keys.js';
import {login, Poll} from './poll.js';
import {Server, Tiles} from './server.js';
import {Since} from './since.js';
import {Slow} from './slow.js';
import {Tenants} from './tenants.js';
import {Upstreams} from './upstreams.js';
import {judge} from './words.js';

const ITEMS = 6;                // of the list below the sentence; the others are in the tables
const ANNOUNCE_EVERY_MS = 10000; // a screen reader is told of changes at most this often

const history = new History();
const since = new Since();
const views = {
    tiles: new Tiles(byId('tiles')),
    tenants: new Tenants(byId('tenants')),
    hotkeys: new HotKeys(byId('hotkeys')),
    upstreams: new Upstreams(byId('upstreams')),
    slow: new Slow(byId('slow')),
    server: new Server(byId('server')),
};
let charts = null; // made when the page is visible, since it needs its widths
let shownAt = 0;   // the server's time of what is shown, in seconds; 0: nothing yet
let version = '';  // of the server
let lostSince = 0; // performance.now() of the first vain try

// ---- the state ----

/* Makes the list what it should be; elements stay, so that a text one has selected stays selected. */
function showItems(list, items) {
    const rest = items.length - ITEMS;
    while (list.children.length > Math.min(items.length, ITEMS)) {
        list.lastChild.remove();
    }
    items.slice(0, ITEMS).forEach(({level, tag, who, text}, i) => {
        const item = list.children[i] || list.appendChild(
            make('li', '', make('span'), make('strong', 'who'), make('span', 'what')));
        setTag(item.children[0], level, tag);
        setText(item.children[1], who);
        setTitle(item.children[1], who);
        setText(item.children[2], text);
    });
    setText(byId('others'), rest > 0 ? 'and ' + plural(rest, 'other', 'others') + ', in the tables below' : '');
    setHidden(byId('others'), rest <= 0);
    setHidden(list, !items.length);
}

let announced = '', announcedAt = -ANNOUNCE_EVERY_MS;

function announce(sentence) {
    const now = performance.now();
    if (sentence !== announced && now - announcedAt >= ANNOUNCE_EVERY_MS) {
        announced = sentence;
        announcedAt = now;
        byId('announce').textContent = sentence;
    }
}

function showState(parts) {
    const {level, sentence, items} = judge(parts);
    setClass(byId('state'), 'panel state ' + level);
    setText(byId('sentence'), sentence);
    showItems(byId('attention'), items);
    announce(sentence);
    document.title = (level === 'ok' ? '' : (level === 'bad' ? '✕ ' : '▲ ') + sentence + ' – ') + 'Headgate';
}

// ---- a round ----

/* One part that cannot be shown shall not take the others with it. */
function attempt(what) {
    try {
        what();
    } catch (error) {
        console.error(error);
    }
}

function showData(parts) {
    const first = byId('page').hidden;
    const {status} = parts;
    if (lostSince) {
        lostSince = 0;
        setHidden(byId('lost'), true);
        byId('page').classList.remove('stale');
    }
    if (version && version !== status.version) {
        location.reload(); // another version's page goes with it
        return;
    }
    version = status.version;
    setHidden(byId('login'), true);
    setHidden(byId('page'), false);
    attempt(() => history.add(parts.history));
    attempt(() => since.update(parts.tenants.tenants || [], history, status.now));
    charts ||= new Charts(byId('charts'));
    attempt(() => showState(parts));
    attempt(() => charts.update(history));
    attempt(() => views.tiles.update(parts, history.series));
    for (const name of ['tenants', 'hotkeys', 'upstreams', 'slow', 'server']) {
        attempt(() => views[name].update(parts));
    }
    shownAt = status.now;
    setText(byId('about'), location.host + ' · ' + status.version + ' · up ' + duration(status.uptime_s));
    showLive();
    if (first && location.hash) {
        document.querySelector(CSS.escape ? '#' + CSS.escape(location.hash.slice(1)) : '#main')?.scrollIntoView();
    }
}

function showLive() {
    const live = byId('live');
    if (poll.frozen) {
        setClass(live, 'live frozen');
        setText(live, '❚❚ frozen at ' + clock(shownAt));
    } else if (lostSince) {
        setClass(live, 'live bad');
        setText(live, '✕ no connection');
    } else {
        setClass(live, 'live ok');
        setText(live, '● live ' + clock(shownAt));
    }
}

let lostAt = 0; // the wall clock's, for people

function showLost(error) {
    if (!lostSince) {
        lostSince = performance.now();
        lostAt = Date.now() / 1000;
        byId('page').classList.add('stale');
    }
    const answered = /^it answers/.test(error.message);
    // Said once, by the alert; what counts on is beside it.
    setText(byId('lost-what'), (answered ? 'The server does not answer as it should (' + error.message + '), '
                                         : 'No connection to the server ') + 'since ' + clock(lostAt) + '.');
    setText(byId('lost-for'), 'That is ' + duration((performance.now() - lostSince) / 1000) + '. ' +
        (shownAt ? 'What is below is of ' + clock(shownAt) + '. ' : '') + 'It is tried again each second.');
    setHidden(byId('lost'), false);
    document.title = '✕ no connection – Headgate';
    showLive();
}

function showLogin() {
    setHidden(byId('lost'), true);
    setHidden(byId('page'), true);
    setHidden(byId('login'), false);
    setClass(byId('live'), 'live');
    setText(byId('live'), 'a token is wanted');
    byId('token').focus();
}

const poll = new Poll({data: showData, lost: showLost, token: showLogin}, () => history.ask());

// ---- what one can do ----

byId('login').addEventListener('submit', async event => {
    event.preventDefault();
    const wrong = byId('login-wrong'), token = byId('token');
    setText(wrong, '');
    try {
        if (await login(token.value)) {
            token.value = '';
            poll.stopped = false;
            poll.wake();
        } else {
            setText(wrong, 'That is not the token.');
            token.select();
        }
    } catch {
        setText(wrong, 'The server does not answer.');
    }
});

function freeze() {
    const button = byId('freeze');
    poll.freeze(!poll.frozen);
    setText(button, poll.frozen ? 'Resume' : 'Freeze');
    byId('page').classList.toggle('still', poll.frozen);
    showLive();
}

byId('freeze').addEventListener('click', freeze);
listenToKeys({f: freeze});
poll.wake();
