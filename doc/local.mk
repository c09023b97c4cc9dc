# doc: the manual. Each page is one of these two; tests/tools/links.sh holds the README to the list.
# One a line: they are merged.
dist_man_MANS += doc/headgate-load.1
dist_man_MANS += doc/headgate.8
dist_man_MANS += doc/headgate.yaml.5
dist_man_MANS += doc/headgatectl.1
dist_man_MANS += doc/users.yaml.5
# README.md lies in $(docdir), and names its pages as doc/PAGE: there as here.
docpagesdir = $(docdir)/doc
dist_docpages_DATA =
dist_docpages_DATA += doc/api.md
dist_docpages_DATA += doc/architecture.md
dist_docpages_DATA += doc/clients.md
dist_docpages_DATA += doc/concepts.md
dist_docpages_DATA += doc/configuration.md
dist_docpages_DATA += doc/console.md
dist_docpages_DATA += doc/contributing.md
dist_docpages_DATA += doc/credits.md
dist_docpages_DATA += doc/dashboard-dark.png
dist_docpages_DATA += doc/dashboard-light.png
dist_docpages_DATA += doc/dashboard.md
dist_docpages_DATA += doc/getting-started.md
dist_docpages_DATA += doc/hbase.md
dist_docpages_DATA += doc/hotkeys.md
dist_docpages_DATA += doc/monitoring.md
dist_docpages_DATA += doc/operations.md
dist_docpages_DATA += doc/overload-fixed.csv
dist_docpages_DATA += doc/overload.csv
dist_docpages_DATA += doc/overload.md
dist_docpages_DATA += doc/overload.svg
dist_docpages_DATA += doc/performance.md
dist_docpages_DATA += doc/plot-overload
dist_docpages_DATA += doc/pool.md
dist_docpages_DATA += doc/protocol.md
dist_docpages_DATA += doc/stores.md
dist_docpages_DATA += doc/tables.md
dist_docpages_DATA += doc/throttling.md
dist_docpages_DATA += doc/tls.md
dist_docpages_DATA += doc/users.md
examplesdir = $(docdir)/examples
# The example's, and every other client's, messages.
dist_examples_DATA = doc/examples/table_client.py proto/table.proto

# Writes the manual's lists anew from the program's tables.
update-manual: headgate$(EXEEXT) tests/tools/manualdump$(EXEEXT)
	$(AM_V_GEN)top_srcdir='$(top_srcdir)' top_builddir='$(top_builddir)' \
	  $(SHELL) $(top_srcdir)/tests/tools/drift-manual.sh update
.PHONY: update-manual

# Draws the overload anew from its table, which headgate-load --series wrote; another with, for
# example, PLOT_TABLES='adaptive=a.csv fixed=f.csv' PLOT_OUTPUT=both.svg.
PLOT_TABLES = 'adaptive=$(top_srcdir)/doc/overload.csv' \
  'fixed 1024=$(top_srcdir)/doc/overload-fixed.csv'
PLOT_OUTPUT = '$(top_srcdir)/doc/overload.svg'
PLOT_FLAGS = --title 'A store of 1,000 requests a second, half of it, five times, half' --capacity 1000 \
  --slo-ms 100 --window 0.4
plot-overload:
	$(AM_V_GEN)/usr/bin/python3 '$(top_srcdir)/doc/plot-overload' -o $(PLOT_OUTPUT) $(PLOT_FLAGS) \
	  $(PLOT_TABLES)
.PHONY: plot-overload
