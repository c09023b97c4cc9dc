# tests/unit

# The wire
if HAVE_CMOCKA
UNIT_TESTS += tests/unit/t_opcode tests/unit/t_status tests/unit/t_frame tests/unit/t_frame_shape \
	tests/unit/t_frameinfo tests/unit/t_hello tests/unit/t_reply tests/unit/t_mcreq \
	tests/unit/t_errmap
endif
HG_PROTO_TEST_LIBS = libproto.a libbase.a $(CMOCKA_LIBS)
tests_unit_t_opcode_SOURCES = tests/unit/t_opcode.c
tests_unit_t_opcode_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_t_opcode_LDADD = $(HG_PROTO_TEST_LIBS)
tests_unit_t_status_SOURCES = tests/unit/t_status.c
tests_unit_t_status_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_t_status_LDADD = $(HG_PROTO_TEST_LIBS)
tests_unit_t_frame_SOURCES = tests/unit/t_frame.c tests/unit/frames.h
tests_unit_t_frame_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_t_frame_LDADD = $(HG_PROTO_TEST_LIBS)
tests_unit_t_frame_shape_SOURCES = tests/unit/t_frame_shape.c tests/unit/frames.h
tests_unit_t_frame_shape_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_t_frame_shape_LDADD = $(HG_PROTO_TEST_LIBS)
tests_unit_t_frameinfo_SOURCES = tests/unit/t_frameinfo.c
tests_unit_t_frameinfo_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_t_frameinfo_LDADD = $(HG_PROTO_TEST_LIBS) -lm
tests_unit_t_hello_SOURCES = tests/unit/t_hello.c
tests_unit_t_hello_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_t_hello_LDADD = $(HG_PROTO_TEST_LIBS)
tests_unit_t_reply_SOURCES = tests/unit/t_reply.c
tests_unit_t_reply_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS) $(JANSSON_CFLAGS)
tests_unit_t_reply_LDADD = $(HG_PROTO_TEST_LIBS) $(JANSSON_LIBS)
tests_unit_t_mcreq_SOURCES = tests/unit/t_mcreq.c
tests_unit_t_mcreq_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_t_mcreq_LDADD = $(HG_PROTO_TEST_LIBS)
tests_unit_t_errmap_SOURCES = tests/unit/t_errmap.c
tests_unit_t_errmap_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS) $(JANSSON_CFLAGS)
tests_unit_t_errmap_LDADD = $(HG_PROTO_TEST_LIBS) $(JANSSON_LIBS)

# Servers behind
if HAVE_CMOCKA
UNIT_TESTS += tests/unit/t_ring tests/unit/t_resolve
endif
HG_BACK_TEST_LIBS = $(HG_LIBS_BACK) $(MEMCACHED_LIBS) $(LMDB_LIBS) $(XXHASH_LIBS) $(EVENT_LIBS) \
	$(CMOCKA_LIBS)
HG_BACK_TEST_CPPFLAGS = $(AM_CPPFLAGS) $(EVENT_CFLAGS) $(MEMCACHED_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_t_ring_SOURCES = tests/unit/t_ring.c
tests_unit_t_ring_CPPFLAGS = $(HG_BACK_TEST_CPPFLAGS)
tests_unit_t_ring_LDADD = $(HG_BACK_TEST_LIBS)
tests_unit_t_resolve_SOURCES = tests/unit/t_resolve.c
tests_unit_t_resolve_CPPFLAGS = $(HG_BACK_TEST_CPPFLAGS)
tests_unit_t_resolve_LDADD = $(HG_BACK_TEST_LIBS)
