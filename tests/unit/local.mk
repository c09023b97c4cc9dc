# tests/unit

# The embedded store
if HAVE_CMOCKA
UNIT_TESTS += tests/unit/t_item tests/unit/t_item_memcached \
	tests/unit/t_embedded tests/unit/t_embedded_life \
	tests/unit/t_embedded_full tests/unit/t_embedded_threads tests/unit/t_embedded_kill \
	tests/unit/t_embedded_model
endif
HG_EMBEDDED_TEST_CPPFLAGS = $(AM_CPPFLAGS) $(EVENT_CFLAGS) $(LMDB_CFLAGS) $(CMOCKA_CFLAGS)
HG_EMBEDDED_TEST_LIBS = $(HG_LIBS_BACK) $(EVENT_LIBS) $(LMDB_LIBS) $(CMOCKA_LIBS)
tests_unit_t_item_SOURCES = tests/unit/t_item.c
tests_unit_t_item_CPPFLAGS = $(HG_EMBEDDED_TEST_CPPFLAGS)
tests_unit_t_item_LDADD = $(HG_EMBEDDED_TEST_LIBS)
tests_unit_t_embedded_SOURCES = tests/unit/t_embedded.c tests/unit/embeddedhelp.h
tests_unit_t_embedded_CPPFLAGS = $(HG_EMBEDDED_TEST_CPPFLAGS)
tests_unit_t_embedded_LDADD = $(HG_EMBEDDED_TEST_LIBS)
tests_unit_t_embedded_life_SOURCES = tests/unit/t_embedded_life.c tests/unit/embeddedhelp.h
tests_unit_t_embedded_life_CPPFLAGS = $(HG_EMBEDDED_TEST_CPPFLAGS)
tests_unit_t_embedded_life_LDADD = $(HG_EMBEDDED_TEST_LIBS)
tests_unit_t_embedded_full_SOURCES = tests/unit/t_embedded_full.c tests/unit/embeddedhelp.h
tests_unit_t_embedded_full_CPPFLAGS = $(HG_EMBEDDED_TEST_CPPFLAGS)
tests_unit_t_embedded_full_LDADD = $(HG_EMBEDDED_TEST_LIBS)
tests_unit_t_embedded_threads_SOURCES = tests/unit/t_embedded_threads.c tests/unit/embeddedhelp.h
tests_unit_t_embedded_threads_CPPFLAGS = $(HG_EMBEDDED_TEST_CPPFLAGS)
tests_unit_t_embedded_threads_LDADD = $(HG_EMBEDDED_TEST_LIBS)
tests_unit_t_embedded_kill_SOURCES = tests/unit/t_embedded_kill.c tests/unit/embeddedhelp.h
tests_unit_t_embedded_kill_CPPFLAGS = $(HG_EMBEDDED_TEST_CPPFLAGS)
tests_unit_t_embedded_kill_LDADD = $(HG_EMBEDDED_TEST_LIBS)
tests_unit_t_item_memcached_SOURCES = tests/unit/t_item_memcached.c
tests_unit_t_item_memcached_CPPFLAGS = $(HG_EMBEDDED_TEST_CPPFLAGS)
tests_unit_t_item_memcached_LDADD = $(HG_EMBEDDED_TEST_LIBS)
tests_unit_t_embedded_model_SOURCES = tests/unit/t_embedded_model.c tests/unit/embeddedhelp.h
tests_unit_t_embedded_model_CPPFLAGS = $(HG_EMBEDDED_TEST_CPPFLAGS)
tests_unit_t_embedded_model_LDADD = $(HG_EMBEDDED_TEST_LIBS)
