# doc: the manual. Each page is one of these two; tests/tools/links.sh holds the README to the list.
# One a line: they are merged.
dist_man_MANS += doc/headgate-load.1
dist_man_MANS += doc/headgate.8
dist_man_MANS += doc/headgate.yaml.5
dist_man_MANS += doc/headgatectl.1
dist_man_MANS += doc/users.yaml.5
dist_doc_DATA += doc/api.md
dist_doc_DATA += doc/architecture.md
dist_doc_DATA += doc/clients.md
dist_doc_DATA += doc/concepts.md
dist_doc_DATA += doc/configuration.md
dist_doc_DATA += doc/console.md
dist_doc_DATA += doc/contributing.md
dist_doc_DATA += doc/credits.md
dist_doc_DATA += doc/dashboard.md
dist_doc_DATA += doc/getting-started.md
dist_doc_DATA += doc/hbase.md
dist_doc_DATA += doc/hotkeys.md
dist_doc_DATA += doc/monitoring.md
dist_doc_DATA += doc/operations.md
dist_doc_DATA += doc/overload.md
dist_doc_DATA += doc/performance.md
dist_doc_DATA += doc/pool.md
dist_doc_DATA += doc/protocol.md
dist_doc_DATA += doc/stores.md
dist_doc_DATA += doc/tables.md
dist_doc_DATA += doc/throttling.md
dist_doc_DATA += doc/tls.md
dist_doc_DATA += doc/users.md
dist_doc_DATA += doc/dashboard-dark.png
dist_doc_DATA += doc/dashboard-light.png
dist_doc_DATA += doc/overload.csv doc/overload-fixed.csv doc/overload.svg doc/plot-overload
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
