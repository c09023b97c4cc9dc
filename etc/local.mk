# etc
EXTRA_DIST += etc/headgate.yaml etc/users.yaml etc/demo/headgate.yaml etc/demo/users.yaml etc/demo/load etc/demo/hot etc/demo/redis.yaml \
	etc/demo/overload etc/demo/overload.yaml
# For Prometheus and Grafana; what they are checked with is not installed.
prometheusdir = $(pkgdatadir)/prometheus
dist_prometheus_DATA = etc/prometheus/headgate.rules.yml
grafanadir = $(pkgdatadir)/grafana
dist_grafana_DATA = etc/grafana/headgate.json
EXTRA_DIST += etc/prometheus/headgate.test.yml
# completion for bash
bashcompletiondir = $(datadir)/bash-completion/completions
dist_bashcompletion_DATA = etc/bash-completion/headgate etc/bash-completion/headgatectl \
	etc/bash-completion/headgate-load

# Units of systemd; where to is configure's --with-systemdsystemunitdir.
EXTRA_DIST += etc/systemd/headgate.service.in etc/systemd/headgate.socket
CLEANFILES += etc/systemd/headgate.service
if HAVE_SYSTEMD_UNITS
systemdsystemunit_DATA = etc/systemd/headgate.service etc/systemd/headgate.socket
endif
# Here, since sbindir and sysconfdir are known only now.
etc/systemd/headgate.service: $(srcdir)/etc/systemd/headgate.service.in Makefile
	$(AM_V_GEN)$(MKDIR_P) etc/systemd && \
		sed -e 's|@''sbindir@|$(sbindir)|g' -e 's|@''sysconfdir@|$(sysconfdir)|g' \
		$(srcdir)/etc/systemd/headgate.service.in >$@.tmp && mv $@.tmp $@
