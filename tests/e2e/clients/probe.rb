# probe.rb - what Dalli makes of a status; see probe.py
# SPDX-License-Identifier: BSD-3-Clause
require "dalli"
require "logger"

$stdout.sync = true
Dalli.logger = Logger.new(File::NULL)
host, port, op, *statuses = ARGV

def attempt
  yield.inspect
rescue StandardError => e
  "#{e.class}: #{e.message}"
end

statuses.each do |status|
  key = "s#{status}"
  dc = Dalli::Client.new("#{host}:#{port}", protocol: :binary, socket_timeout: 1)
  action = { "get" => -> { dc.get(key, raw: true) },
             "set" => -> { dc.set(key, "v", 0, raw: true) },
             "incr" => -> { dc.incr(key) },
             "delete" => -> { dc.delete(key) },
             "multi" => -> { dc.get_multi("good1", key, "good2").keys.sort } }[op]
  dc.get("begin", raw: true)
  saw = attempt { action.call }
  good = attempt { dc.get("good", raw: true) }
  puts [status, saw.split.join(" "), good == '"is good"' ? "ok" : good].join("\t")
  dc.close
end
