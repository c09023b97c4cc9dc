# tests/unit

# The decisions
if HAVE_CMOCKA
UNIT_TESTS += tests/unit/t_units tests/unit/t_credit tests/unit/t_fairpool tests/unit/t_held \
	tests/unit/t_creditthreads tests/unit/t_breaker tests/unit/t_backoff tests/unit/t_loginguard
endif
tests_unit_t_units_SOURCES = tests/unit/t_units.c
tests_unit_t_units_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_t_units_LDADD = libcore.a libbase.a $(CMOCKA_LIBS)
tests_unit_t_credit_SOURCES = tests/unit/t_credit.c
tests_unit_t_credit_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_t_credit_LDADD = libcore.a libbase.a $(CMOCKA_LIBS)
tests_unit_t_fairpool_SOURCES = tests/unit/t_fairpool.c
tests_unit_t_fairpool_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_t_fairpool_LDADD = libcore.a libbase.a $(CMOCKA_LIBS)
tests_unit_t_held_SOURCES = tests/unit/t_held.c
tests_unit_t_held_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_t_held_LDADD = libcore.a libbase.a $(CMOCKA_LIBS)
tests_unit_t_creditthreads_SOURCES = tests/unit/t_creditthreads.c
tests_unit_t_creditthreads_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_t_creditthreads_LDADD = libcore.a libbase.a $(CMOCKA_LIBS)
tests_unit_t_breaker_SOURCES = tests/unit/t_breaker.c
tests_unit_t_breaker_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_t_breaker_LDADD = libcore.a libbase.a $(CMOCKA_LIBS)
tests_unit_t_backoff_SOURCES = tests/unit/t_backoff.c
tests_unit_t_backoff_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_t_backoff_LDADD = libcore.a libbase.a $(CMOCKA_LIBS)
tests_unit_t_loginguard_SOURCES = tests/unit/t_loginguard.c
tests_unit_t_loginguard_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_t_loginguard_LDADD = libcore.a libbase.a $(CMOCKA_LIBS)
