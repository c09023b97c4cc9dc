# tests/unit

# The embedded store
if HAVE_CMOCKA
UNIT_TESTS += tests/unit/t_item tests/unit/t_embedded tests/unit/t_embedded_life \
	tests/unit/t_embedded_full
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
