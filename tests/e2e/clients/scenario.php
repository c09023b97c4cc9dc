<?php
// scenario.php - what an application does with PHP's memcached extension over the binary protocol
// SPDX-License-Identifier: BSD-3-Clause
//
//   php scenario.php HOST PORT USER|- PASSWORD|- PREFIX
[, $host, $port, $user, $password, $prefix] = $argv;
$mc = new Memcached();
$mc->setOption(Memcached::OPT_BINARY_PROTOCOL, true);
$mc->setOption(Memcached::OPT_PREFIX_KEY, $prefix);
if ($user !== '-') {
    $mc->setSaslAuthData($user, $password);
}
$mc->addServer($host, (int) $port);

function step(string $name, $got, $want): void
{
    global $mc;
    if ($got !== $want) {
        fwrite(STDERR, "$name: got " . var_export($got, true) . ', want ' . var_export($want, true)
            . ', code ' . $mc->getResultCode() . ' ' . $mc->getResultMessage() . "\n");
        exit(1);
    }
}

step('get missing', $mc->get('a'), false);
step('not found', $mc->getResultCode(), Memcached::RES_NOTFOUND);
step('set', $mc->set('a', 'one'), true);
step('get', $mc->get('a'), 'one');
$mc->set('o', ['x' => [1, null, 2.5]]);
step('array', $mc->get('o'), ['x' => [1, null, 2.5]]);
$mc->setOption(Memcached::OPT_COMPRESSION, false);
$big = str_repeat("x\0\r\n", 125000);
step('set big', $mc->set('big', $big), true);
step('big', $mc->get('big') === $big, true);
$mc->set('e', '');
step('empty', $mc->get('e'), '');
step('add there', $mc->add('a', 'two'), false);
step('add new', $mc->add('c', 'three'), true);
step('replace', $mc->replace('c', 'four'), true);
step('replace missing', $mc->replace('zz', 'x'), false);
$all = [];
for ($n = 0; $n < 100; $n++) {
    $all["m$n"] = "v$n";
}
step('setMulti', $mc->setMulti($all), true);
$names = array_merge(array_keys($all), ['nope1', 'nope2']);
$got = $mc->getMulti($names);
ksort($got);
ksort($all);
step('getMulti', $got, $all);
step('getMulti of nothing', $mc->getMulti(['nope1', 'nope2']), []);
step('increment with initial', $mc->increment('i', 1, 5), 5);
step('increment', $mc->increment('i', 3), 8);
step('decrement', $mc->decrement('i', 10), 0);
$ext = $mc->get('a', null, Memcached::GET_EXTENDED);
step('gets', $ext['value'], 'one');
step('cas', $mc->cas($ext['cas'], 'a', 'new'), true);
step('cas again', $mc->cas($ext['cas'], 'a', 'newer'), false);
step('cas code', $mc->getResultCode(), Memcached::RES_DATA_EXISTS);
$mc->set('s', 'middle');
step('append', $mc->append('s', '-end'), true);
step('prepend', $mc->prepend('s', 'start-'), true);
step('appended', $mc->get('s'), 'start-middle-end');
step('append to missing', $mc->append('zz', 'x'), false);
step('touch', $mc->touch('s', 3600), true);
step('touch missing', $mc->touch('zz', 3600), false);
step('delete', $mc->delete('a'), true);
step('delete missing', $mc->delete('a'), false);
step('deleteMulti', $mc->deleteMulti(['m1', 'm2']), ['m1' => true, 'm2' => true]);
$mc->set('t', 'short', 1);
$end = microtime(true) + 10;
while ($mc->get('t') !== false) {
    step('expiry', microtime(true) < $end, true);
    usleep(50000);
}
step('stats', is_array($mc->getStats()), true);
step('version', count($mc->getVersion()), 1);
echo "PASS\n";
