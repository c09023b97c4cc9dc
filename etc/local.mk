# etc
EXTRA_DIST += etc/headgate.yaml etc/users.yaml etc/demo/headgate.yaml etc/demo/users.yaml etc/demo/load etc/demo/hot etc/demo/redis.yaml \
	etc/demo/overload etc/demo/overload.yaml
# For Prometheus and Grafana; what they are checked with is not installed.
prometheusdir = $(pkgdatadir)/prometheus
dist_prometheus_DATA = etc/prometheus/headgate.rules.yml
grafanadir = $(pkgdatadir)/grafana
dist_grafana_DATA = etc/grafana/headgate.json
EXTRA_DIST += etc/prometheus/headgate.test.yml
