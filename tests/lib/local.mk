# tests/lib: what the end-to-end suites and the comparisons share.
# A real memcached made slow.
check_PROGRAMS += tests/lib/slowstore
tests_lib_slowstore_SOURCES = tests/lib/slowstore.c tests/lib/slowservice.c tests/lib/slowservice.h
tests_lib_slowstore_CFLAGS = $(AM_CFLAGS) $(EVENT_CFLAGS)
tests_lib_slowstore_LDADD = $(EVENT_LIBS) -lm
EXTRA_DIST += tests/lib/openload.py tests/lib/slowstore.py
