// scenario.js - what an application does with memjs over the binary protocol
// SPDX-License-Identifier: BSD-3-Clause
//
//   NODE_PATH=.../node_modules node scenario.js HOST PORT USER|- PASSWORD|- PREFIX
'use strict';
const assert = require('assert');
const memjs = require('memjs');

const [host, port, user, password, prefix] = process.argv.slice(2);
const options = { timeout: 5, retries: 1 };
if (user !== '-') {
  options.username = user;
  options.password = password;
}
const mc = memjs.Client.create(`${host}:${port}`, options);
const k = (name) => prefix + name;
const text = async (name) => {
  const got = await mc.get(k(name));
  return got.value === null ? null : got.value.toString();
};

async function main() {
  assert.strictEqual(await text('a'), null, 'get missing');
  assert.strictEqual(await mc.set(k('a'), 'one', {}), true, 'set');
  assert.strictEqual(await text('a'), 'one', 'get');
  const bytes = Buffer.alloc(500000, 'x');
  bytes[7] = 0;
  await mc.set(k('big'), bytes, {});
  assert.ok((await mc.get(k('big'))).value.equals(bytes), 'big');
  await mc.set(k('e'), '', {});
  assert.strictEqual(await text('e'), '', 'empty');
  assert.strictEqual(await mc.add(k('a'), 'two', {}), false, 'add there');
  assert.strictEqual(await mc.add(k('c'), 'three', {}), true, 'add new');
  assert.strictEqual(await mc.replace(k('c'), 'four', {}), true, 'replace');
  assert.strictEqual(await mc.replace(k('zz'), 'x', {}), false, 'replace missing');
  const names = [...Array(100).keys()];
  await Promise.all(names.map((n) => mc.set(k('m' + n), 'v' + n, {})));
  const many = await Promise.all(names.map((n) => text('m' + n)));
  assert.deepStrictEqual(many, names.map((n) => 'v' + n), 'many at once');
  const inc = await mc.increment(k('i'), 1, { initial: 5 });
  assert.strictEqual(inc.value, 5, 'increment with initial');
  assert.strictEqual((await mc.increment(k('i'), 3, {})).value, 8, 'increment');
  assert.strictEqual((await mc.decrement(k('i'), 10, {})).value, 0, 'decrement');
  await mc.set(k('s'), 'middle', {});
  assert.strictEqual(await mc.append(k('s'), '-end'), true, 'append');
  // No prepend here: memjs 1.3 sends an append for it.
  assert.strictEqual(await text('s'), 'middle-end', 'appended');
  await assert.rejects(mc.append(k('zz'), 'x'), /not stored/, 'append to missing');
  assert.strictEqual(await mc.touch(k('s'), 3600), true, 'touch');
  assert.strictEqual(await mc.touch(k('zz'), 3600), false, 'touch missing');
  assert.strictEqual(await mc.delete(k('a')), true, 'delete');
  assert.strictEqual(await mc.delete(k('a')), false, 'delete missing');
  await mc.set(k('t'), 'short', { expires: 1 });
  const end = Date.now() + 10000;
  while ((await text('t')) !== null) {
    assert.ok(Date.now() < end, 'expiry');
    await new Promise((go) => setTimeout(go, 50));
  }
  await new Promise((go, fail) => mc.stats((err, server, stats) => {
    if (err) fail(err); else if (stats) go();
  }));
  mc.quit();
  console.log('PASS');
}

main().catch((err) => {
  console.error(err);
  process.exit(1);
});
