# tests/bench
noinst_PROGRAMS += tests/bench/bench_embedded
tests_bench_bench_embedded_SOURCES = tests/bench/bench_embedded.c
tests_bench_bench_embedded_CPPFLAGS = $(AM_CPPFLAGS) $(EVENT_CFLAGS) $(LMDB_CFLAGS)
tests_bench_bench_embedded_LDADD = $(HG_LIBS_BACK) $(EVENT_LIBS) $(LMDB_LIBS) -lm
