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
