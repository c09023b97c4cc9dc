# tests/flow

# Servers behind
if HAVE_CMOCKA
UNIT_TESTS += tests/flow/t_link tests/flow/t_pool tests/flow/t_outage \
	tests/flow/t_memcached tests/flow/t_memcached_real
endif
RIG = tests/flow/rig.c tests/flow/rig.h tests/flow/fake.c tests/flow/fake.h
HG_RIG_CPPFLAGS = $(HG_BACK_TEST_CPPFLAGS) -I$(top_srcdir)/tests/flow
tests_flow_t_link_SOURCES = tests/flow/t_link.c $(RIG)
tests_flow_t_link_CPPFLAGS = $(HG_RIG_CPPFLAGS)
tests_flow_t_link_LDADD = $(HG_BACK_TEST_LIBS)
tests_flow_t_pool_SOURCES = tests/flow/t_pool.c $(RIG)
tests_flow_t_pool_CPPFLAGS = $(HG_RIG_CPPFLAGS)
tests_flow_t_pool_LDADD = $(HG_BACK_TEST_LIBS)
tests_flow_t_outage_SOURCES = tests/flow/t_outage.c $(RIG)
tests_flow_t_outage_CPPFLAGS = $(HG_RIG_CPPFLAGS)
tests_flow_t_outage_LDADD = $(HG_BACK_TEST_LIBS)
tests_flow_t_memcached_SOURCES = tests/flow/t_memcached.c $(RIG)
tests_flow_t_memcached_CPPFLAGS = $(HG_RIG_CPPFLAGS)
tests_flow_t_memcached_LDADD = $(HG_BACK_TEST_LIBS)
tests_flow_t_memcached_real_SOURCES = tests/flow/t_memcached_real.c $(RIG)
tests_flow_t_memcached_real_CPPFLAGS = $(HG_RIG_CPPFLAGS)
tests_flow_t_memcached_real_LDADD = $(HG_BACK_TEST_LIBS)
