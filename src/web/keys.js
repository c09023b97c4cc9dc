// keys - shortcuts, and the list of them
// SPDX-License-Identifier: BSD-3-Clause

import {byId} from './dom.js';

const SECTIONS = ['state', 'tenants', 'hotkeys', 'upstreams', 'charts', 'slow', 'server'];

function goTo(name) {
    const title = name === 'state' ? byId('main') : byId(name + '-title');
    byId(name).scrollIntoView({block: 'start'});
    title.focus({preventScroll: true});
}

function filterHere() {
    const here = document.activeElement?.closest('section')?.querySelector('input[type=search]');
    const filter = here || byId('tenants').querySelector('input[type=search]');
    filter.focus();
    filter.select();
}

/* actions: what else there is, key -> function. */
export function listenToKeys(actions) {
    const dialog = byId('keys');
    const showKeys = () => dialog.open || dialog.showModal();
    byId('help').addEventListener('click', showKeys);
    document.addEventListener('keydown', event => {
        const typing = event.target.matches('input:not([type=checkbox]), select, textarea');
        if (typing || dialog.open || byId('page').hidden || event.ctrlKey || event.altKey || event.metaKey) {
            return;
        }
        const act = event.key === '?' ? showKeys
            : event.key === '/' ? filterHere
            : SECTIONS[event.key] ? () => goTo(SECTIONS[event.key])
            : actions[event.key];
        if (act) {
            event.preventDefault();
            act();
        }
    });
}
