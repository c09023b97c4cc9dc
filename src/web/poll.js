// poll - asks the server each second, and knows whether it answers
// SPDX-License-Identifier: BSD-3-Clause
//
// One round asks all parts at once and is shown when all are there, so that the parts of the page
// agree. A round begins a second after the one before began, or when that has ended if it took
// longer: never two at a time. Nothing is asked while the tab is hidden or the page is frozen.

const STEP_MS = 1000;
const PATIENCE_MS = 4000; // for one round; then the server counts as lost
const PARTS = ['status', 'tenants', 'hotkeys', 'upstreams', 'slow'];

export class NoToken extends Error {}

/* What the server says in words (503, 500) or that it does not answer at all. */
async function get(path, signal) {
    const answer = await fetch(path, {signal, cache: 'no-store', credentials: 'same-origin'});
    if (answer.status === 401) {
        throw new NoToken();
    }
    if (!answer.ok) {
        throw new Error('it answers ' + path + ' with ' + answer.status);
    }
    try {
        return await answer.json();
    } catch (error) {
        throw error instanceof SyntaxError ? new Error('it answers ' + path + ' with what is no JSON') : error;
    }
}

/* tell: {data(parts), lost(error), token()}; since(): what history is wanted from. */
export class Poll {
    constructor(tell, since) {
        this.tell = tell;
        this.since = since;
        this.frozen = false;
        this.stopped = false; // until a token is given
        this.timer = 0;
        this.running = false;
        this.well = false; // the last round was answered
        document.addEventListener('visibilitychange', () => this.wake());
    }

    get isIdle() {
        return this.frozen || this.stopped || document.hidden;
    }

    freeze(frozen) {
        this.frozen = frozen;
        this.wake();
    }

    /* Asks at once, if it should ask at all. */
    wake() {
        clearTimeout(this.timer);
        if (!this.running && !this.isIdle) {
            this.round();
        }
    }

    async round() {
        const begin = performance.now();
        const abort = new AbortController();
        const patience = setTimeout(() => abort.abort(), PATIENCE_MS);
        let tell;
        this.running = true;
        try {
            const parts = await this.ask(abort.signal);
            this.well = true;
            tell = () => this.tell.data(parts);
        } catch (error) {
            abort.abort();
            this.well = false;
            this.stopped = error instanceof NoToken && !this.frozen;
            tell = () => this.stopped ? this.tell.token() : this.tell.lost(error);
        }
        clearTimeout(patience);
        this.running = false;
        if (!this.isIdle) {
            this.timer = setTimeout(() => this.wake(), Math.max(0, STEP_MS - (performance.now() - begin)));
        }
        if (!this.frozen) {
            tell();
        }
    }

    async ask(signal) {
        if (!this.well) {
            await get('api/status.json', signal); // one vain try, not six
        }
        const paths = PARTS.map(part => 'api/' + part + '.json');
        paths.push('api/history.json?since=' + this.since());
        const answers = await Promise.all(paths.map(path => get(path, signal)));
        return Object.fromEntries([...PARTS, 'history'].map((part, i) => [part, answers[i]]));
    }
}

/* Gives the token to the server, which puts it into a cookie that scripts cannot read. Whether it
   was the right one. */
export async function login(token) {
    const answer = await fetch('login', {
        method: 'POST', credentials: 'same-origin', cache: 'no-store', redirect: 'manual',
        headers: {'Content-Type': 'application/x-www-form-urlencoded'},
        body: new URLSearchParams({token}),
    });
    return answer.ok || answer.type === 'opaqueredirect';
}
