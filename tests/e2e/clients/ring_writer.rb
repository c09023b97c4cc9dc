# ring_writer.rb - writes COUNT keys with Dalli straight to the servers
# SPDX-License-Identifier: BSD-3-Clause
#
#   ring_writer.rb PREFIX COUNT HOST:PORT ...
require "dalli"

prefix, count, *servers = ARGV
client = Dalli::Client.new(servers, protocol: :binary, serializer: nil, socket_timeout: 5)
client.multi do
  Integer(count).times { |n| client.set("#{prefix}#{n}", "#{n}@dalli", 0, raw: true) }
end
# A loud request behind the quiet ones of each server: they have been carried out when it is.
client.stats
client.close
