# src/web: the dashboard. Its files become a table in the program, which serves them from memory.
web_files = index.html headgate.css icon.svg \
	charts.js dom.js format.js headgate.js history.js hotkeys.js keys.js poll.js server.js since.js slow.js \
	table.js tenants.js upstreams.js words.js \
	vendor/uPlot.iife.min.js vendor/uPlot.min.css
web_sources = $(web_files:%=src/web/%)
EXTRA_DIST += $(web_sources) src/web/embed src/web/vendor/README src/web/vendor/LICENSE

nodist_libapp_a_SOURCES = src/web/webfiles.c
CLEANFILES += src/web/webfiles.c
src/web/webfiles.c: $(web_sources) src/web/embed src/web/local.mk
	$(AM_V_GEN)$(MKDIR_P) src/web && \
	$(SHELL) '$(top_srcdir)/src/web/embed' '$(top_srcdir)/src/web' $(web_files) >$@.new && mv $@.new $@
