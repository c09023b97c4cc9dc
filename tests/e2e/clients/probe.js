// probe.js - what memjs makes of a status; see probe.py
// SPDX-License-Identifier: BSD-3-Clause
'use strict';
const memjs = require('memjs');

const [host, port, op, ...statuses] = process.argv.slice(2);

async function attempt(action) {
  const late = new Promise((go, fail) => setTimeout(fail, 3000, new Error('never answered')));
  try {
    return JSON.stringify(await Promise.race([action(), late]));
  } catch (err) {
    return 'Error: ' + (err && err.message ? err.message : err);
  }
}

const value = (got) => (got.value === null ? null : got.value.toString());
const quiet = { log() {} };

async function main() {
  for (const status of statuses) {
    const key = 's' + status;
    const mc = memjs.Client.create(`${host}:${port}`, { timeout: 1, logger: quiet });
    const action = {
      get: async () => value(await mc.get(key)),
      set: () => mc.set(key, 'v', {}),
      incr: async () => (await mc.increment(key, 1, {})).value,
      delete: () => mc.delete(key),
    }[op];
    await mc.get('begin');
    const saw = await attempt(action);
    const good = await attempt(async () => value(await mc.get('good')));
    console.log([status, saw.split(/\s+/).join(' '), good === '"is good"' ? 'ok' : good].join('\t'));
    mc.close();
  }
}

main().then(() => process.exit(0));
