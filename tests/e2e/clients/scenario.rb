# scenario.rb - what an application does with Dalli over the binary protocol
# SPDX-License-Identifier: BSD-3-Clause
#
#   scenario.rb HOST PORT USER|- PASSWORD|- PREFIX
require "dalli"

host, port, user, password, prefix = ARGV
options = { protocol: :binary, namespace: prefix, socket_timeout: 5 }
options.update(username: user, password: password) unless user == "-"
dc = Dalli::Client.new("#{host}:#{port}", options)

def step(name, got, want)
  raise "#{name}: got #{got.inspect}, want #{want.inspect}" unless got == want
end

step("get missing", dc.get("a"), nil)
step("set", dc.set("a", "one").is_a?(Integer), true)
step("get", dc.get("a"), "one")
step("objects", [dc.set("o", { "x" => [1, nil, 2.5] }) && dc.get("o")], [{ "x" => [1, nil, 2.5] }])
big = "x" * 500_000
dc.set("big", big, 0, raw: true)
step("big", dc.get("big", raw: true), big)
dc.set("e", "", 0, raw: true)
step("empty", dc.get("e", raw: true), "")
step("add there", dc.add("a", "two"), false)
step("add new", dc.add("c", "three").is_a?(Integer), true)
step("replace", dc.replace("c", "four").is_a?(Integer), true)
step("replace missing", dc.replace("zz", "x"), 0) # the CAS of the reply
dc.multi { 100.times { |n| dc.set("m#{n}", "v#{n}") } }
names = (0...120).map { |n| "m#{n}" }
step("get_multi", dc.get_multi(*names), (0...100).to_h { |n| ["m#{n}", "v#{n}"] })
step("get_multi of nothing", dc.get_multi("nope1", "nope2"), {})
step("incr missing", dc.incr("i"), nil)
step("incr with default", dc.incr("i", 1, 0, 5), 5)
step("incr", dc.incr("i", 3), 8)
step("decr", dc.decr("i", 10), 0)
step("cas", dc.cas("a") { |value| value + "!" }.is_a?(Integer), true)
step("after cas", dc.get("a"), "one!")
stale = dc.cas("a") do |value|
  dc.set("a", "changed by another")
  value + "?"
end
step("cas lost", stale, false)
dc.set("s", "middle", 0, raw: true)
step("append", dc.append("s", "-end"), true)
step("prepend", dc.prepend("s", "start-"), true)
step("appended", dc.get("s", raw: true), "start-middle-end")
step("touch", dc.touch("s", 3600), true)
step("touch missing", dc.touch("zz", 3600), nil)
step("gat", dc.gat("s", 3600), "start-middle-end")
step("delete", dc.delete("a"), true)
step("delete missing", dc.delete("a"), nil)
dc.set("t", "short", 1)
finish = Time.now + 10
until dc.get("t").nil?
  raise "expiry" if Time.now > finish

  sleep 0.05
end
raise "stats" if dc.stats.values.first.empty?
raise "version" unless dc.version.values.first =~ /\A\d+\.\d+\.\d+\z/

dc.close
puts "PASS"
