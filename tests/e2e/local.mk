# tests/e2e: the built daemon against real servers and real clients. `make check-e2e` runs it all;
# E2E_FLAGS are passed on, for example E2E_FLAGS='-k credits'.
e2e_programs = ring_writer scenario_c probe_c tests/lib/slowstore
check_PROGRAMS += ring_writer scenario_c probe_c

ring_writer_SOURCES = tests/e2e/clients/ring_writer.c
ring_writer_LDADD = $(MEMCACHED_LIBS)
scenario_c_SOURCES = tests/e2e/clients/scenario_c.c
scenario_c_LDADD = $(MEMCACHED_LIBS)
probe_c_SOURCES = tests/e2e/clients/probe_c.c
probe_c_LDADD = $(MEMCACHED_LIBS)

EXTRA_DIST += tests/e2e/breaker_tools.py
EXTRA_DIST += tests/e2e/browser_tools.py
EXTRA_DIST += tests/e2e/client_statuses.py
EXTRA_DIST += tests/e2e/client_tools.py
EXTRA_DIST += tests/e2e/clients/probe.js
EXTRA_DIST += tests/e2e/clients/probe.php
EXTRA_DIST += tests/e2e/clients/probe.py
EXTRA_DIST += tests/e2e/clients/probe.rb
EXTRA_DIST += tests/e2e/clients/ring_writer.rb
EXTRA_DIST += tests/e2e/clients/scenario.js
EXTRA_DIST += tests/e2e/clients/scenario.php
EXTRA_DIST += tests/e2e/clients/scenario.py
EXTRA_DIST += tests/e2e/clients/scenario.rb
EXTRA_DIST += tests/e2e/conftest.py
EXTRA_DIST += tests/e2e/credit_tools.py
EXTRA_DIST += tests/e2e/handover_tools.py
EXTRA_DIST += tests/e2e/hotkey_tools.py
EXTRA_DIST += tests/e2e/innocent_tools.py
EXTRA_DIST += tests/e2e/overload_tools.py
EXTRA_DIST += tests/e2e/prometheus_tools.py
EXTRA_DIST += tests/e2e/redis_tools.py
EXTRA_DIST += tests/e2e/row_tools.py
EXTRA_DIST += tests/e2e/screen_tools.py
EXTRA_DIST += tests/e2e/test_admin.py
EXTRA_DIST += tests/e2e/test_backup.py
EXTRA_DIST += tests/e2e/test_bench.py
EXTRA_DIST += tests/e2e/test_bindevict.py
EXTRA_DIST += tests/e2e/test_breaker.py
EXTRA_DIST += tests/e2e/test_chaos.py
EXTRA_DIST += tests/e2e/test_clients.py
EXTRA_DIST += tests/e2e/test_credits.py
EXTRA_DIST += tests/e2e/test_ctl_operate.py
EXTRA_DIST += tests/e2e/test_ctl_table.py
EXTRA_DIST += tests/e2e/test_ctl_unit.py
EXTRA_DIST += tests/e2e/test_dashboard.py
EXTRA_DIST += tests/e2e/test_events.py
EXTRA_DIST += tests/e2e/test_failures.py
EXTRA_DIST += tests/e2e/test_fairby.py
EXTRA_DIST += tests/e2e/test_hbase.py
EXTRA_DIST += tests/e2e/test_hotkeys.py
EXTRA_DIST += tests/e2e/test_hotkeys_epochs.py
EXTRA_DIST += tests/e2e/test_hotkeys_options.py
EXTRA_DIST += tests/e2e/test_hotkeys_types.py
EXTRA_DIST += tests/e2e/test_hotkeys_views.py
EXTRA_DIST += tests/e2e/test_http.py
EXTRA_DIST += tests/e2e/test_http_hostile.py
EXTRA_DIST += tests/e2e/test_identity.py
EXTRA_DIST += tests/e2e/test_incident.py
EXTRA_DIST += tests/e2e/test_innocents_loops.py
EXTRA_DIST += tests/e2e/test_innocents_servers.py
EXTRA_DIST += tests/e2e/test_innocents_tenants.py
EXTRA_DIST += tests/e2e/test_keyshare.py
EXTRA_DIST += tests/e2e/test_leaks.py
EXTRA_DIST += tests/e2e/test_load.py
EXTRA_DIST += tests/e2e/test_load_open.py
EXTRA_DIST += tests/e2e/test_load_rows.py
EXTRA_DIST += tests/e2e/test_ops.py
EXTRA_DIST += tests/e2e/test_overload.py
EXTRA_DIST += tests/e2e/test_pool.py
EXTRA_DIST += tests/e2e/test_redis.py
EXTRA_DIST += tests/e2e/test_redis_cluster.py
EXTRA_DIST += tests/e2e/test_redis_config.py
EXTRA_DIST += tests/e2e/test_redis_hostile.py
EXTRA_DIST += tests/e2e/test_redis_servers.py
EXTRA_DIST += tests/e2e/test_relay.py
EXTRA_DIST += tests/e2e/test_reload.py
EXTRA_DIST += tests/e2e/test_restart.py
EXTRA_DIST += tests/e2e/test_ring.py
EXTRA_DIST += tests/e2e/test_semantics.py
EXTRA_DIST += tests/e2e/test_sizes.py
EXTRA_DIST += tests/e2e/test_states.py
EXTRA_DIST += tests/e2e/test_table.py
EXTRA_DIST += tests/e2e/test_tickets_config.py
EXTRA_DIST += tests/e2e/test_tls.py
EXTRA_DIST += tests/e2e/test_tls_upstreams.py
EXTRA_DIST += tests/e2e/test_top.py
EXTRA_DIST += tests/e2e/test_trace.py
EXTRA_DIST += tests/e2e/test_wire.py

.PHONY: check-e2e check-clients-table
check-e2e: all $(e2e_programs)
	HG_BUILD='$(abs_top_builddir)' PYTHONPYCACHEPREFIX='$(abs_top_builddir)/pycache' /usr/bin/python3 -m pytest \
	  -p no:cacheprovider --strict-markers -q -rs $(E2E_FLAGS) '$(top_srcdir)/tests/e2e'

check-clients-table: $(e2e_programs)
	HG_BUILD='$(abs_top_builddir)' /usr/bin/python3 '$(top_srcdir)/tests/e2e/client_statuses.py' \
	  -o '$(top_srcdir)/doc/clients.md'
