# tests/unit

if HAVE_CMOCKA
UNIT_TESTS += tests/unit/t_hist tests/unit/t_load_gen tests/unit/t_load_parse
tests_unit_t_hist_SOURCES = tests/unit/t_hist.c
tests_unit_t_hist_LDADD = libbase.a $(CMOCKA_LIBS)
tests_unit_t_load_gen_SOURCES = tests/unit/t_load_gen.c src/load/gen.c
tests_unit_t_load_gen_LDADD = $(CMOCKA_LIBS) -lm
tests_unit_t_load_parse_SOURCES = tests/unit/t_load_parse.c src/load/addr.c src/load/gen.c \
	src/load/parse.c src/load/status.c
tests_unit_t_load_parse_LDADD = $(CMOCKA_LIBS) -lm
endif
