# tests/bench
noinst_PROGRAMS += tests/bench/bench_embedded
tests_bench_bench_embedded_SOURCES = tests/bench/bench_embedded.c
tests_bench_bench_embedded_LDADD = $(HG_LIBS_BACK) $(CRYPTO_LIBS) $(EVENT_LIBS) $(LMDB_LIBS) -lm
# `make bench BENCH_ARGS="--quick"`: the comparison of doc/performance.md. Not part of `make check`.
EXTRA_DIST += tests/bench/compare.py tests/bench/pairs.py

.PHONY: bench
bench: headgate$(EXEEXT) headgate-load$(EXEEXT)
	/usr/bin/python3 $(top_srcdir)/tests/bench/compare.py --build $(abs_builddir) $(BENCH_ARGS)

# Nanoseconds of the steps of a request: `make bench-micro`.
noinst_PROGRAMS += tests/bench/bench_micro
tests_bench_bench_micro_SOURCES = tests/bench/bench_micro.c tests/bench/bench_balance.c \
	tests/bench/bench_balance.h
tests_bench_bench_micro_LDADD = libtable.a libcore.a libproto.a libbase.a -lm
.PHONY: bench-micro
bench-micro: tests/bench/bench_micro
	tests/bench/bench_micro

# What one thing costs: hot-key tracking, tickets and bind throttle, the adaptive control, a refusal.
.PHONY: bench-tracking bench-tickets bench-adaptive bench-refusal
bench-tracking bench-tickets bench-adaptive bench-refusal: headgate$(EXEEXT) headgate-load$(EXEEXT)
	/usr/bin/python3 $(top_srcdir)/tests/bench/pairs.py $(@:bench-%=%) --build $(abs_builddir) \
		$(BENCH_ARGS)

# Goodput beyond capacity, by each control of the tickets: `make bench-overload`.
EXTRA_DIST += tests/bench/overload.py
.PHONY: bench-overload
bench-overload: headgate$(EXEEXT) headgate-load$(EXEEXT) tests/lib/slowstore$(EXEEXT)
	/usr/bin/python3 $(top_srcdir)/tests/bench/overload.py --build $(abs_builddir) $(BENCH_ARGS)

# Memory of an idle connection, plain and with TLS: `make bench-idle`.
EXTRA_DIST += tests/bench/idle_tls.py
.PHONY: bench-idle
bench-idle: headgate$(EXEEXT)
	HG_BUILD=$(abs_builddir) /usr/bin/python3 $(top_srcdir)/tests/bench/idle_tls.py $(BENCH_ARGS)
# What a scrape of /metrics costs with 100 tenants, in CPU time: `make bench-scrape`.
EXTRA_DIST += tests/bench/scrape.py
.PHONY: bench-scrape
bench-scrape: headgate$(EXEEXT)
	/usr/bin/python3 $(top_srcdir)/tests/bench/scrape.py --build $(abs_builddir) $(BENCH_ARGS)

# What the innocents of an overload lose, by scene: `make bench-innocents`, about a quarter of an hour.
EXTRA_DIST += tests/bench/innocents.py
.PHONY: bench-innocents
bench-innocents: headgate$(EXEEXT) headgate-load$(EXEEXT) tests/lib/slowstore$(EXEEXT)
	/usr/bin/python3 $(top_srcdir)/tests/bench/innocents.py --build $(abs_builddir) $(BENCH_ARGS)
