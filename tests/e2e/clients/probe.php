<?php
// probe.php - what PHP's memcached extension makes of a status; see probe.py
// SPDX-License-Identifier: BSD-3-Clause
[, $host, $port, $op] = $argv;

foreach (array_slice($argv, 4) as $status) {
    $key = "s$status";
    $mc = new Memcached();
    $mc->setOption(Memcached::OPT_BINARY_PROTOCOL, true);
    $mc->addServer($host, (int) $port);
    $action = [
        'get' => fn() => $mc->get($key),
        'set' => fn() => $mc->set($key, 'v'),
        'incr' => fn() => $mc->increment($key),
        'delete' => fn() => $mc->delete($key),
        'multi' => fn() => $mc->getMulti(['good1', $key, 'good2']),
    ][$op];
    $mc->get('begin');
    $got = $action();
    $saw = is_array($got) ? json_encode(array_keys($got)) : var_export($got, true);
    if ($mc->getResultCode() !== Memcached::RES_SUCCESS) {
        $saw .= ', ' . $mc->getResultMessage();
    }
    $good = $mc->get('good');
    echo implode("\t", [$status, preg_replace('/\s+/', ' ', $saw),
        $good === 'is good' ? 'ok' : var_export($good, true) . ', ' . $mc->getResultMessage()]), "\n";
    $mc->quit();
}
