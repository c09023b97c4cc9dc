# tests/flow

# Servers behind
if HAVE_CMOCKA
UNIT_TESTS += tests/flow/t_link
endif
RIG = tests/flow/rig.c tests/flow/rig.h tests/flow/fake.c tests/flow/fake.h
HG_RIG_CPPFLAGS = $(HG_BACK_TEST_CPPFLAGS) -I$(top_srcdir)/tests/flow
tests_flow_t_link_SOURCES = tests/flow/t_link.c $(RIG)
tests_flow_t_link_CPPFLAGS = $(HG_RIG_CPPFLAGS)
tests_flow_t_link_LDADD = $(HG_BACK_TEST_LIBS)
