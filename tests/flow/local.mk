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

# The client side
if HAVE_CMOCKA
UNIT_TESTS += tests/flow/t_session tests/flow/t_session_end tests/flow/t_session_pressure \
	tests/flow/t_dispatch tests/flow/t_dispatch_identity tests/flow/t_held_credits \
	tests/flow/t_worker
endif
STAGE = tests/flow/scene.h tests/flow/stage.c tests/flow/stage.h tests/flow/stagehooks.c \
	tests/flow/stagehooks.h tests/flow/fakestore.c tests/flow/fakestore.h tests/flow/client.c \
	tests/flow/client.h
HG_STAGE_CPPFLAGS = $(AM_CPPFLAGS) $(EVENT_CFLAGS) $(CMOCKA_CFLAGS) -I$(top_srcdir)/tests/flow
HG_STAGE_LIBS = libfront.a libio.a libcore.a libproto.a libbase.a $(EVENT_LIBS) $(CMOCKA_LIBS)
tests_flow_t_session_SOURCES = tests/flow/t_session.c $(STAGE)
tests_flow_t_session_CPPFLAGS = $(HG_STAGE_CPPFLAGS)
tests_flow_t_session_LDADD = $(HG_STAGE_LIBS)
tests_flow_t_session_pressure_SOURCES = tests/flow/t_session_pressure.c $(STAGE)
tests_flow_t_session_pressure_CPPFLAGS = $(HG_STAGE_CPPFLAGS)
tests_flow_t_session_pressure_LDADD = $(HG_STAGE_LIBS)
tests_flow_t_session_end_SOURCES = tests/flow/t_session_end.c $(STAGE)
tests_flow_t_session_end_CPPFLAGS = $(HG_STAGE_CPPFLAGS)
tests_flow_t_session_end_LDADD = $(HG_STAGE_LIBS)
tests_flow_t_dispatch_SOURCES = tests/flow/t_dispatch.c $(STAGE)
tests_flow_t_dispatch_CPPFLAGS = $(HG_STAGE_CPPFLAGS)
tests_flow_t_dispatch_LDADD = $(HG_STAGE_LIBS)
tests_flow_t_dispatch_identity_SOURCES = tests/flow/t_dispatch_identity.c $(STAGE)
tests_flow_t_dispatch_identity_CPPFLAGS = $(HG_STAGE_CPPFLAGS)
tests_flow_t_dispatch_identity_LDADD = $(HG_STAGE_LIBS)
tests_flow_t_held_credits_SOURCES = tests/flow/t_held_credits.c $(STAGE)
tests_flow_t_held_credits_CPPFLAGS = $(HG_STAGE_CPPFLAGS)
tests_flow_t_held_credits_LDADD = $(HG_STAGE_LIBS)
tests_flow_t_worker_SOURCES = tests/flow/t_worker.c $(STAGE)
tests_flow_t_worker_CPPFLAGS = $(HG_STAGE_CPPFLAGS)
tests_flow_t_worker_LDADD = $(HG_STAGE_LIBS)
