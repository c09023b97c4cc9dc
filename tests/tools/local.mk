# tests/tools
check_PROGRAMS += tests/tools/confdump
tests_tools_confdump_SOURCES = tests/tools/confdump.c
tests_tools_confdump_LDADD = libapp.a $(YAML_LIBS) $(JANSSON_LIBS) $(CRYPTO_LIBS)
SCRIPT_TESTS += tests/tools/drift-conf.sh
EXTRA_DIST += tests/tools/drift-conf.sh

# Writes the sample configuration and the manual's list of options anew from src/app/conf.def.
update-conf: tests/tools/confdump$(EXEEXT)
	$(AM_V_GEN)tests/tools/confdump sample > $(top_srcdir)/etc/headgate.yaml.new && \
	mv $(top_srcdir)/etc/headgate.yaml.new $(top_srcdir)/etc/headgate.yaml && \
	{ sed '/^<!-- options: begin -->$$/q' $(top_srcdir)/doc/configuration.md && \
	  tests/tools/confdump manual && echo '<!-- options: end -->'; } > $(top_srcdir)/doc/configuration.md.new && \
	mv $(top_srcdir)/doc/configuration.md.new $(top_srcdir)/doc/configuration.md
.PHONY: update-conf
# The manual against the program: its lists, the statistics of a server that runs, links, the README's demonstration.
check_PROGRAMS += tests/tools/manualdump
tests_tools_manualdump_SOURCES = tests/tools/manualdump.c
tests_tools_manualdump_LDADD = libproto.a libbase.a
SCRIPT_TESTS += tests/tools/drift-manual.sh tests/tools/drift-stats.sh tests/tools/links.sh \
	tests/tools/demo.sh
EXTRA_DIST += tests/tools/drift-manual.sh tests/tools/drift-stats.sh tests/tools/drift-stats.py \
	tests/tools/links.sh tests/tools/links.py tests/tools/demo.sh tests/tools/demo.py tests/tools/demo-overload.sh

# tests/tools: checks of the source itself
SCRIPT_TESTS += tests/tools/layers.sh tests/tools/pure.sh tests/tools/rows.sh
EXTRA_DIST += tests/tools/check tests/tools/mutate tests/tools/coverage tests/tools/tsan.supp tests/tools/layers.sh tests/tools/pure.sh \
	tests/tools/rows.sh tests/tools/rows.py
# layers.sh leaves what the compiler said.
CLEANFILES += headers.log

# tests/tools: tracing points against the manual
SCRIPT_TESTS += tests/tools/usdt.sh
EXTRA_DIST += tests/tools/usdt.sh

# tests/tools: completion for bash against the programs
SCRIPT_TESTS += tests/tools/completion.sh
EXTRA_DIST += tests/tools/completion.sh

# Writes their lists anew.
update-completion: headgate$(EXEEXT) headgatectl$(EXEEXT) headgate-load$(EXEEXT)
	$(AM_V_GEN)top_srcdir='$(top_srcdir)' top_builddir='$(top_builddir)' \
	  $(SHELL) $(top_srcdir)/tests/tools/completion.sh update
.PHONY: update-completion

# tests/tools: man pages, packages
SCRIPT_TESTS += tests/tools/man.sh
EXTRA_DIST += tests/tools/man.sh tests/tools/man-wrap tests/tools/package

# tests/tools: the check itself
SCRIPT_TESTS += tests/tools/check-self.sh
EXTRA_DIST += tests/tools/check-self.sh
EXTRA_DIST += tests/check/builds.py tests/check/commands.py tests/check/deep.py tests/check/ledger.py \
	tests/check/quick.py tests/check/selftest.py tests/check/since.py tests/check/steps.py \
	tests/check/suites.py

# tests/tools: how a test is run, under a time limit
EXTRA_DIST += tests/tools/tap-driver-timed
