# tests/e2e: the built daemon against real servers and real clients. `make check-e2e` runs it all;
# E2E_FLAGS are passed on, for example E2E_FLAGS='-k credits'.
e2e_programs = ring_writer scenario_c probe_c tests/lib/slowstore
check_PROGRAMS += ring_writer scenario_c probe_c

ring_writer_SOURCES = tests/e2e/clients/ring_writer.c
ring_writer_CFLAGS = $(AM_CFLAGS) $(MEMCACHED_CFLAGS)
ring_writer_LDADD = $(MEMCACHED_LIBS)
scenario_c_SOURCES = tests/e2e/clients/scenario_c.c
scenario_c_CFLAGS = $(AM_CFLAGS) $(MEMCACHED_CFLAGS)
scenario_c_LDADD = $(MEMCACHED_LIBS)
probe_c_SOURCES = tests/e2e/clients/probe_c.c
probe_c_CFLAGS = $(AM_CFLAGS) $(MEMCACHED_CFLAGS)
probe_c_LDADD = $(MEMCACHED_LIBS)

EXTRA_DIST += \
	tests/lib/certs.py tests/lib/flood.py tests/lib/mcbin.py tests/lib/redisservers.py tests/lib/respbin.py tests/lib/servers.py tests/lib/tablebin.py \
	tests/e2e/client_statuses.py tests/e2e/client_tools.py tests/e2e/conftest.py \
	tests/e2e/credit_tools.py tests/e2e/hotkey_tools.py tests/e2e/redis_tools.py tests/e2e/row_tools.py \
	tests/e2e/credit_tools.py tests/e2e/hotkey_tools.py \
	tests/e2e/test_admin.py tests/e2e/test_chaos.py tests/e2e/test_clients.py tests/e2e/test_credits.py tests/e2e/test_ctl_unit.py \
	tests/e2e/test_hotkeys.py tests/e2e/test_hotkeys_epochs.py tests/e2e/test_hotkeys_types.py \
	tests/e2e/test_hotkeys_views.py \
	tests/e2e/test_failures.py tests/e2e/test_hotkey_views.py tests/e2e/test_identity.py tests/e2e/test_leaks.py \
	tests/e2e/overload_tools.py tests/e2e/test_bindevict.py tests/e2e/test_overload.py \
	tests/e2e/test_backup.py tests/e2e/test_ops.py tests/e2e/test_pool.py tests/e2e/test_redis.py tests/e2e/test_redis_cluster.py tests/e2e/test_redis_config.py tests/e2e/test_relay.py \
	tests/e2e/test_redis_hostile.py tests/e2e/test_redis_servers.py tests/e2e/test_ring.py tests/e2e/test_semantics.py \
	tests/e2e/test_sizes.py tests/e2e/test_tls.py tests/e2e/test_wire.py \
	tests/e2e/test_ctl_table.py tests/e2e/test_hbase.py tests/e2e/test_load.py tests/e2e/test_load_open.py tests/e2e/test_load_rows.py \
	tests/e2e/test_hotkeys.py tests/e2e/test_hotkeys_epochs.py tests/e2e/test_hotkeys_types.py \
	tests/e2e/test_hotkeys_views.py tests/e2e/test_table.py \
	tests/e2e/clients/probe.js tests/e2e/clients/probe.php tests/e2e/clients/probe.py \
	tests/e2e/clients/probe.rb tests/e2e/clients/ring_writer.rb tests/e2e/clients/scenario.js \
	tests/e2e/clients/scenario.php tests/e2e/clients/scenario.py tests/e2e/clients/scenario.rb

.PHONY: check-e2e check-clients-table
check-e2e: all $(e2e_programs)
	HG_BUILD='$(abs_top_builddir)' PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 -m pytest \
	  -p no:cacheprovider -q -rs $(E2E_FLAGS) '$(top_srcdir)/tests/e2e'

check-clients-table: $(e2e_programs)
	HG_BUILD='$(abs_top_builddir)' /usr/bin/python3 '$(top_srcdir)/tests/e2e/client_statuses.py' \
	  -o '$(top_srcdir)/doc/clients.md'

EXTRA_DIST += tests/e2e/test_tickets_config.py
EXTRA_DIST += tests/e2e/test_http.py tests/e2e/test_http_hostile.py tests/lib/webclient.py
EXTRA_DIST += tests/e2e/test_restart.py
EXTRA_DIST += tests/e2e/browser_tools.py tests/e2e/test_dashboard.py
EXTRA_DIST += tests/e2e/test_ctl_operate.py tests/e2e/test_states.py tests/e2e/test_top.py
EXTRA_DIST += tests/e2e/test_tls_upstreams.py
EXTRA_DIST += tests/e2e/test_incident.py tests/e2e/test_trace.py
EXTRA_DIST += tests/e2e/handover_tools.py tests/e2e/prometheus_tools.py tests/e2e/screen_tools.py
EXTRA_DIST += tests/e2e/test_reload.py
