# tests/lib: what the end-to-end suites and the comparisons share.
# A real memcached made slow.
check_PROGRAMS += tests/lib/slowstore
tests_lib_slowstore_SOURCES = tests/lib/slowstore.c tests/lib/slowservice.c tests/lib/slowservice.h
tests_lib_slowstore_LDADD = $(EVENT_LIBS) -lm
EXTRA_DIST += tests/lib/built.py
EXTRA_DIST += tests/lib/certs.py
EXTRA_DIST += tests/lib/flood.py
EXTRA_DIST += tests/lib/mcbin.py
EXTRA_DIST += tests/lib/openload.py
EXTRA_DIST += tests/lib/redisservers.py
EXTRA_DIST += tests/lib/respbin.py
EXTRA_DIST += tests/lib/servers.py
EXTRA_DIST += tests/lib/slowstore.py
EXTRA_DIST += tests/lib/tablebin.py
EXTRA_DIST += tests/lib/webclient.py
