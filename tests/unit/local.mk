# tests/unit

# The decisions
if HAVE_CMOCKA
UNIT_TESTS += tests/unit/t_units tests/unit/t_credit tests/unit/t_credittick \
	tests/unit/t_fairpool tests/unit/t_held tests/unit/t_creditthreads tests/unit/t_breaker tests/unit/t_backoff tests/unit/t_loginguard
endif
tests_unit_t_units_SOURCES = tests/unit/t_units.c
tests_unit_t_units_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_t_units_LDADD = libcore.a libbase.a $(CMOCKA_LIBS)
tests_unit_t_credit_SOURCES = tests/unit/t_credit.c tests/unit/creditrig.h
tests_unit_t_credit_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_t_credit_LDADD = libcore.a libbase.a $(CMOCKA_LIBS)
tests_unit_t_credittick_SOURCES = tests/unit/t_credittick.c tests/unit/creditrig.h
tests_unit_t_credittick_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_t_credittick_LDADD = libcore.a libbase.a $(CMOCKA_LIBS)
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
if HAVE_CMOCKA
UNIT_TESTS += \
	tests/unit/t_adminjson \
	tests/unit/t_conf \
	tests/unit/t_conf_check \
	tests/unit/t_conf_diff \
	tests/unit/t_conf_ring \
	tests/unit/t_conf_value \
	tests/unit/t_secret \
	tests/unit/t_state \
	tests/unit/t_state_file \
	tests/unit/t_users \
	tests/unit/t_yamldoc
endif

# Tests of src/app: the option table, users, secrets, state and JSON need that layer's files only.
t_app_cflags = $(AM_CFLAGS) $(CMOCKA_CFLAGS) $(YAML_CFLAGS) $(JANSSON_CFLAGS) $(CRYPTO_CFLAGS)
t_app_libs = libapp.a $(YAML_LIBS) $(JANSSON_LIBS) $(CRYPTO_LIBS) $(CMOCKA_LIBS)

tests_unit_t_adminjson_SOURCES = tests/unit/t_adminjson.c tests/unit/apphelp.h
tests_unit_t_adminjson_CFLAGS = $(t_app_cflags)
tests_unit_t_adminjson_LDADD = $(t_app_libs)
tests_unit_t_conf_SOURCES = tests/unit/t_conf.c tests/unit/apphelp.h
tests_unit_t_conf_CFLAGS = $(t_app_cflags)
tests_unit_t_conf_LDADD = $(t_app_libs)
tests_unit_t_conf_check_SOURCES = tests/unit/t_conf_check.c tests/unit/apphelp.h
tests_unit_t_conf_check_CFLAGS = $(t_app_cflags)
tests_unit_t_conf_check_LDADD = $(t_app_libs)
tests_unit_t_conf_diff_SOURCES = tests/unit/t_conf_diff.c tests/unit/apphelp.h
tests_unit_t_conf_diff_CFLAGS = $(t_app_cflags)
tests_unit_t_conf_diff_LDADD = $(t_app_libs)
tests_unit_t_conf_ring_SOURCES = tests/unit/t_conf_ring.c tests/unit/apphelp.h
tests_unit_t_conf_ring_CFLAGS = $(t_app_cflags) $(MEMCACHED_CFLAGS)
tests_unit_t_conf_ring_LDADD = $(t_app_libs) $(MEMCACHED_LIBS)
tests_unit_t_conf_value_SOURCES = tests/unit/t_conf_value.c tests/unit/apphelp.h
tests_unit_t_conf_value_CFLAGS = $(t_app_cflags)
tests_unit_t_conf_value_LDADD = $(t_app_libs)
tests_unit_t_secret_SOURCES = tests/unit/t_secret.c tests/unit/apphelp.h
tests_unit_t_secret_CFLAGS = $(t_app_cflags)
tests_unit_t_secret_LDADD = $(t_app_libs)
tests_unit_t_state_SOURCES = tests/unit/t_state.c tests/unit/statescene.h tests/unit/apphelp.h
tests_unit_t_state_CFLAGS = $(t_app_cflags)
tests_unit_t_state_LDADD = $(t_app_libs)
tests_unit_t_state_file_SOURCES = tests/unit/t_state_file.c tests/unit/statescene.h \
	tests/unit/apphelp.h
tests_unit_t_state_file_CFLAGS = $(t_app_cflags)
tests_unit_t_state_file_LDADD = $(t_app_libs)
tests_unit_t_users_SOURCES = tests/unit/t_users.c tests/unit/apphelp.h
tests_unit_t_users_CFLAGS = $(t_app_cflags)
tests_unit_t_users_LDADD = $(t_app_libs)
tests_unit_t_yamldoc_SOURCES = tests/unit/t_yamldoc.c tests/unit/apphelp.h
tests_unit_t_yamldoc_CFLAGS = $(t_app_cflags)
tests_unit_t_yamldoc_LDADD = $(t_app_libs)

# Servers behind
if HAVE_CMOCKA
UNIT_TESTS += tests/unit/t_ring tests/unit/t_resolve
endif
HG_BACK_TEST_LIBS = $(HG_LIBS_BACK) $(MEMCACHED_LIBS) $(LMDB_LIBS) $(XXHASH_LIBS) $(EVENT_LIBS) \
	$(HIREDIS_LIBS) $(CRYPTO_LIBS) $(CMOCKA_LIBS) -lm
HG_BACK_TEST_CPPFLAGS = $(AM_CPPFLAGS) $(EVENT_CFLAGS) $(MEMCACHED_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_t_ring_SOURCES = tests/unit/t_ring.c
tests_unit_t_ring_CPPFLAGS = $(HG_BACK_TEST_CPPFLAGS)
tests_unit_t_ring_LDADD = $(HG_BACK_TEST_LIBS)
tests_unit_t_resolve_SOURCES = tests/unit/t_resolve.c
tests_unit_t_resolve_CPPFLAGS = $(HG_BACK_TEST_CPPFLAGS)
tests_unit_t_resolve_LDADD = $(HG_BACK_TEST_LIBS)

# Logins
HG_LOGIN_TEST_CPPFLAGS = $(AM_CPPFLAGS) $(EVENT_CFLAGS) $(GSASL_CFLAGS) $(CMOCKA_CFLAGS)
HG_LOGIN_TEST_LIBS = $(HG_LIBS_APP) $(EVHTTP_LIBS) $(EVENT_LIBS) $(JANSSON_LIBS) $(YAML_LIBS) $(GSASL_LIBS) \
	$(CRYPTO_LIBS) $(HIREDIS_LIBS) $(LMDB_LIBS) $(MEMCACHED_LIBS) $(XXHASH_LIBS) $(CMOCKA_LIBS) -lm
if HAVE_CMOCKA
UNIT_TESTS += tests/unit/t_dialogue tests/unit/t_login tests/unit/t_login_bounds
endif
tests_unit_t_dialogue_SOURCES = tests/unit/t_dialogue.c tests/unit/loginhelp.h
tests_unit_t_dialogue_CPPFLAGS = $(HG_LOGIN_TEST_CPPFLAGS)
tests_unit_t_dialogue_LDADD = $(HG_LOGIN_TEST_LIBS)
# The embedded store
if HAVE_CMOCKA
UNIT_TESTS += tests/unit/t_item tests/unit/t_item_memcached \
	tests/unit/t_embedded tests/unit/t_embedded_life \
	tests/unit/t_embedded_full tests/unit/t_embedded_threads tests/unit/t_embedded_kill \
	tests/unit/t_embedded_model
endif
HG_EMBEDDED_TEST_CPPFLAGS = $(AM_CPPFLAGS) $(EVENT_CFLAGS) $(LMDB_CFLAGS) $(CMOCKA_CFLAGS)
HG_EMBEDDED_TEST_LIBS = $(HG_LIBS_BACK) $(CRYPTO_LIBS) $(EVENT_LIBS) $(LMDB_LIBS) $(CMOCKA_LIBS)
tests_unit_t_item_SOURCES = tests/unit/t_item.c
tests_unit_t_item_CPPFLAGS = $(HG_EMBEDDED_TEST_CPPFLAGS)
tests_unit_t_item_LDADD = $(HG_EMBEDDED_TEST_LIBS)
tests_unit_t_embedded_SOURCES = tests/unit/t_embedded.c tests/unit/embeddedhelp.h
tests_unit_t_embedded_CPPFLAGS = $(HG_EMBEDDED_TEST_CPPFLAGS)
tests_unit_t_embedded_LDADD = $(HG_EMBEDDED_TEST_LIBS)
tests_unit_t_embedded_life_SOURCES = tests/unit/t_embedded_life.c tests/unit/embeddedhelp.h
tests_unit_t_embedded_life_CPPFLAGS = $(HG_EMBEDDED_TEST_CPPFLAGS)
tests_unit_t_embedded_life_LDADD = $(HG_EMBEDDED_TEST_LIBS)
tests_unit_t_login_SOURCES = tests/unit/t_login.c tests/unit/loginserver.c \
	tests/unit/loginserver.h tests/unit/loginhelp.h
tests_unit_t_login_CPPFLAGS = $(HG_LOGIN_TEST_CPPFLAGS)
tests_unit_t_login_LDADD = $(HG_LOGIN_TEST_LIBS)
tests_unit_t_login_bounds_SOURCES = tests/unit/t_login_bounds.c tests/unit/loginserver.c \
	tests/unit/loginserver.h tests/unit/loginhelp.h
tests_unit_t_login_bounds_CPPFLAGS = $(HG_LOGIN_TEST_CPPFLAGS)
tests_unit_t_login_bounds_LDADD = $(HG_LOGIN_TEST_LIBS)
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

# Base and I/O
if HAVE_CMOCKA
UNIT_TESTS += tests/unit/t_blob tests/unit/t_log tests/unit/t_loop tests/unit/t_out \
	tests/unit/t_sock tests/unit/t_directory
endif
HG_IO_TEST_CPPFLAGS = $(AM_CPPFLAGS) $(EVENT_CFLAGS) $(CMOCKA_CFLAGS)
HG_IO_TEST_LIBS = libio.a libbase.a $(EVENT_LIBS) $(CMOCKA_LIBS)
tests_unit_t_blob_SOURCES = tests/unit/t_blob.c
tests_unit_t_blob_LDADD = libbase.a $(CMOCKA_LIBS)
tests_unit_t_log_SOURCES = tests/unit/t_log.c
tests_unit_t_log_LDADD = libbase.a $(CMOCKA_LIBS)
tests_unit_t_loop_SOURCES = tests/unit/t_loop.c
tests_unit_t_loop_CPPFLAGS = $(HG_IO_TEST_CPPFLAGS)
tests_unit_t_loop_LDADD = $(HG_IO_TEST_LIBS)
tests_unit_t_out_SOURCES = tests/unit/t_out.c
tests_unit_t_out_CPPFLAGS = $(HG_IO_TEST_CPPFLAGS)
tests_unit_t_out_LDADD = $(HG_IO_TEST_LIBS)
tests_unit_t_sock_SOURCES = tests/unit/t_sock.c
tests_unit_t_sock_CPPFLAGS = $(HG_IO_TEST_CPPFLAGS)
tests_unit_t_sock_LDADD = $(HG_IO_TEST_LIBS)
tests_unit_t_directory_SOURCES = tests/unit/t_directory.c
tests_unit_t_directory_CPPFLAGS = $(HG_IO_TEST_CPPFLAGS)
tests_unit_t_directory_LDADD = libfront.a libio.a libcore.a libproto.a $(HG_IO_TEST_LIBS)

# Memory of a request
if HAVE_CMOCKA
UNIT_TESTS += tests/unit/t_arena
endif
tests_unit_t_arena_SOURCES = tests/unit/t_arena.c
tests_unit_t_arena_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_t_arena_LDADD = libbase.a $(CMOCKA_LIBS)
if HAVE_CMOCKA
UNIT_TESTS += tests/unit/t_load_rows
tests_unit_t_load_rows_SOURCES = tests/unit/t_load_rows.c src/load/gen.c src/load/rowbody.c \
	src/load/series.c src/load/status.c
tests_unit_t_load_rows_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS) $(PROTOBUF_C_CFLAGS)
tests_unit_t_load_rows_LDADD = libtablepb.a libbase.a $(PROTOBUF_C_LIBS) $(CMOCKA_LIBS) -lm
endif

# The table of operations
if HAVE_CMOCKA
UNIT_TESTS += tests/unit/t_op
endif
tests_unit_t_op_SOURCES = tests/unit/t_op.c
tests_unit_t_op_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_t_op_LDADD = libproto.a libbase.a $(CMOCKA_LIBS)
# HBase operations on one row
if HAVE_CMOCKA
UNIT_TESTS += tests/unit/t_hbaseop tests/unit/t_hbaseread tests/unit/t_hbasemodel
endif
HG_HBASE_TEST_LIBS = libtable.a libbase.a $(CMOCKA_LIBS)
tests_unit_t_hbaseop_SOURCES = tests/unit/t_hbaseop.c tests/unit/hbasehelp.h
tests_unit_t_hbaseop_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_t_hbaseop_LDADD = $(HG_HBASE_TEST_LIBS)
tests_unit_t_hbaseread_SOURCES = tests/unit/t_hbaseread.c tests/unit/hbasehelp.h
tests_unit_t_hbaseread_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_t_hbaseread_LDADD = $(HG_HBASE_TEST_LIBS)
tests_unit_t_hbasemodel_SOURCES = tests/unit/t_hbasemodel.c
tests_unit_t_hbasemodel_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_t_hbasemodel_LDADD = libtable.a libproto.a libtablepb.a libbase.a $(PROTOBUF_C_LIBS) \
	$(CMOCKA_LIBS)

# Tables
if HAVE_CMOCKA
UNIT_TESTS += tests/unit/t_filter tests/unit/t_filter_model tests/unit/t_tableop \
	tests/unit/t_tableop_model
endif
tests_unit_t_filter_SOURCES = tests/unit/t_filter.c tests/unit/filterhelp.h
tests_unit_t_filter_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_t_filter_LDADD = libtable.a libproto.a libbase.a $(CMOCKA_LIBS) -lm
tests_unit_t_filter_model_SOURCES = tests/unit/t_filter_model.c
tests_unit_t_filter_model_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_t_filter_model_LDADD = libtable.a libproto.a libbase.a $(CMOCKA_LIBS)
tests_unit_t_tableop_SOURCES = tests/unit/t_tableop.c tests/unit/arenahelp.h \
	tests/unit/tableophelp.h
tests_unit_t_tableop_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_t_tableop_LDADD = libtable.a libproto.a libbase.a $(CMOCKA_LIBS)
# Messages of TableAPI and HBase
if HAVE_CMOCKA
UNIT_TESTS += tests/unit/t_tablemsg tests/unit/t_tablemsg_refuse tests/unit/t_tablemsg_reply \
	tests/unit/t_rowdoc
endif
HG_TABLEMSG_TEST_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS) $(PROTOBUF_C_CFLAGS)
HG_TABLEMSG_TEST_LIBS = libproto.a libtablepb.a libbase.a $(PROTOBUF_C_LIBS) $(CMOCKA_LIBS)
tests_unit_t_tablemsg_SOURCES = tests/unit/t_tablemsg.c tests/unit/arenahelp.h \
	tests/unit/tablehelp.h
tests_unit_t_tablemsg_CFLAGS = $(HG_TABLEMSG_TEST_CFLAGS)
tests_unit_t_tablemsg_LDADD = $(HG_TABLEMSG_TEST_LIBS)
tests_unit_t_tablemsg_refuse_SOURCES = tests/unit/t_tablemsg_refuse.c tests/unit/arenahelp.h \
	tests/unit/tablehelp.h
tests_unit_t_tablemsg_refuse_CFLAGS = $(HG_TABLEMSG_TEST_CFLAGS)
tests_unit_t_tablemsg_refuse_LDADD = $(HG_TABLEMSG_TEST_LIBS)
tests_unit_t_tablemsg_reply_SOURCES = tests/unit/t_tablemsg_reply.c tests/unit/arenahelp.h \
	tests/unit/tablehelp.h
tests_unit_t_tablemsg_reply_CFLAGS = $(HG_TABLEMSG_TEST_CFLAGS)
tests_unit_t_tablemsg_reply_LDADD = $(HG_TABLEMSG_TEST_LIBS)
tests_unit_t_rowdoc_SOURCES = tests/unit/t_rowdoc.c tests/unit/arenahelp.h \
	tests/unit/tablehelp.h
tests_unit_t_rowdoc_CFLAGS = $(HG_TABLEMSG_TEST_CFLAGS)
tests_unit_t_rowdoc_LDADD = $(HG_TABLEMSG_TEST_LIBS)
tests_unit_t_tableop_model_SOURCES = tests/unit/t_tableop_model.c tests/unit/arenahelp.h \
	tests/unit/tableophelp.h
tests_unit_t_tableop_model_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_t_tableop_model_LDADD = libtable.a libproto.a libbase.a $(CMOCKA_LIBS)
# Stretches of keys
if HAVE_CMOCKA
UNIT_TESTS += tests/unit/t_embedded_range
endif
tests_unit_t_embedded_range_SOURCES = tests/unit/t_embedded_range.c tests/unit/embeddedhelp.h
tests_unit_t_embedded_range_CPPFLAGS = $(HG_EMBEDDED_TEST_CPPFLAGS)
tests_unit_t_embedded_range_LDADD = $(HG_EMBEDDED_TEST_LIBS)

# Families of HBase tables
if HAVE_CMOCKA
UNIT_TESTS += tests/unit/t_conf_families
endif
tests_unit_t_conf_families_SOURCES = tests/unit/t_conf_families.c tests/unit/apphelp.h
tests_unit_t_conf_families_CFLAGS = $(t_app_cflags)
tests_unit_t_conf_families_LDADD = $(t_app_libs)

# Hot keys
if HAVE_CMOCKA
UNIT_TESTS += tests/unit/t_hotkey tests/unit/t_hotmerge tests/unit/t_keythrottle \
	tests/unit/t_keythrottleshare tests/unit/t_keylist
endif
HG_HOT_TEST_LIBS = libcore.a libbase.a $(CMOCKA_LIBS) -lm
tests_unit_t_hotkey_SOURCES = tests/unit/t_hotkey.c tests/unit/hothelp.h
tests_unit_t_hotkey_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_t_hotkey_LDADD = $(HG_HOT_TEST_LIBS)
tests_unit_t_hotmerge_SOURCES = tests/unit/t_hotmerge.c tests/unit/hothelp.h
tests_unit_t_hotmerge_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_t_hotmerge_LDADD = $(HG_HOT_TEST_LIBS)
tests_unit_t_keythrottle_SOURCES = tests/unit/t_keythrottle.c tests/unit/keythrottlerig.h \
	tests/unit/hothelp.h
tests_unit_t_keythrottle_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_t_keythrottle_LDADD = $(HG_HOT_TEST_LIBS)
tests_unit_t_keythrottleshare_SOURCES = tests/unit/t_keythrottleshare.c \
	tests/unit/keythrottlerig.h tests/unit/hothelp.h
tests_unit_t_keythrottleshare_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_t_keythrottleshare_LDADD = $(HG_HOT_TEST_LIBS)
tests_unit_t_keylist_SOURCES = tests/unit/t_keylist.c tests/unit/hothelp.h
tests_unit_t_keylist_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_t_keylist_LDADD = $(HG_HOT_TEST_LIBS)

# Redis Cluster: slots and topology
# Leases of connections
if HAVE_CMOCKA
UNIT_TESTS += tests/unit/t_leaseplan tests/unit/t_lease tests/unit/t_lease_threads
endif
tests_unit_t_leaseplan_SOURCES = tests/unit/t_leaseplan.c
tests_unit_t_leaseplan_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_t_leaseplan_LDADD = libcore.a libbase.a $(CMOCKA_LIBS)
tests_unit_t_lease_SOURCES = tests/unit/t_lease.c
tests_unit_t_lease_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_t_lease_LDADD = libback.a libcore.a libbase.a $(CMOCKA_LIBS)
tests_unit_t_lease_threads_SOURCES = tests/unit/t_lease_threads.c
tests_unit_t_lease_threads_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_t_lease_threads_LDADD = libback.a libcore.a libbase.a $(CMOCKA_LIBS) -lpthread
# Redis
if HAVE_CMOCKA
UNIT_TESTS += tests/unit/t_keyslot tests/unit/t_slotsreply tests/unit/t_topology
endif
tests_unit_t_keyslot_SOURCES = tests/unit/t_keyslot.c
tests_unit_t_keyslot_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_t_keyslot_LDADD = $(HG_PROTO_TEST_LIBS)
tests_unit_t_slotsreply_SOURCES = tests/unit/t_slotsreply.c
tests_unit_t_slotsreply_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_t_slotsreply_LDADD = libback.a libproto.a libbase.a $(HIREDIS_LIBS) $(CMOCKA_LIBS)
tests_unit_t_topology_SOURCES = tests/unit/t_topology.c
tests_unit_t_topology_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_t_topology_LDADD = libback.a libproto.a libbase.a $(CMOCKA_LIBS)
# Identities
if HAVE_CMOCKA
UNIT_TESTS += tests/unit/t_identity
endif
tests_unit_t_identity_SOURCES = tests/unit/t_identity.c
tests_unit_t_identity_CPPFLAGS = $(HG_BACK_TEST_CPPFLAGS)
tests_unit_t_identity_LDADD = $(HG_BACK_TEST_LIBS)
# Redis
if HAVE_CMOCKA
UNIT_TESTS += tests/unit/t_redis_read tests/unit/t_redis_error tests/unit/t_redis_write
endif
tests_unit_t_redis_read_SOURCES = tests/unit/t_redis_read.c
tests_unit_t_redis_read_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_t_redis_read_LDADD = libback.a libbase.a $(HIREDIS_LIBS) $(CMOCKA_LIBS)
tests_unit_t_redis_error_SOURCES = tests/unit/t_redis_error.c
tests_unit_t_redis_error_CPPFLAGS = $(HG_BACK_TEST_CPPFLAGS)
tests_unit_t_redis_error_LDADD = $(HG_BACK_TEST_LIBS)
tests_unit_t_redis_write_SOURCES = tests/unit/t_redis_write.c
tests_unit_t_redis_write_CPPFLAGS = $(HG_BACK_TEST_CPPFLAGS)
tests_unit_t_redis_write_LDADD = $(HG_BACK_TEST_LIBS)

# Configuration of Redis upstreams, and of logins to servers
if HAVE_CMOCKA
UNIT_TESTS += tests/unit/t_conf_redis tests/unit/t_conf_logins
endif
tests_unit_t_conf_redis_SOURCES = tests/unit/t_conf_redis.c tests/unit/apphelp.h
tests_unit_t_conf_redis_CFLAGS = $(t_app_cflags)
tests_unit_t_conf_redis_LDADD = $(t_app_libs)
tests_unit_t_conf_logins_SOURCES = tests/unit/t_conf_logins.c tests/unit/apphelp.h
tests_unit_t_conf_logins_CFLAGS = $(t_app_cflags)
tests_unit_t_conf_logins_LDADD = $(t_app_libs)
# The planner of connections
if HAVE_CMOCKA
UNIT_TESTS += tests/unit/t_balance tests/unit/t_balance_quota tests/unit/t_balance_end \
	tests/unit/t_balance_cases tests/unit/t_balance_model
endif
HG_BALANCE_TEST_LIBS = libcore.a libbase.a $(CMOCKA_LIBS) -lm
tests_unit_t_balance_SOURCES = tests/unit/t_balance.c tests/unit/balancerig.h
tests_unit_t_balance_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_t_balance_LDADD = $(HG_BALANCE_TEST_LIBS)
tests_unit_t_balance_quota_SOURCES = tests/unit/t_balance_quota.c tests/unit/balancerig.h
tests_unit_t_balance_quota_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_t_balance_quota_LDADD = $(HG_BALANCE_TEST_LIBS)
tests_unit_t_balance_end_SOURCES = tests/unit/t_balance_end.c tests/unit/balancerig.h
tests_unit_t_balance_end_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_t_balance_end_LDADD = $(HG_BALANCE_TEST_LIBS)
tests_unit_t_balance_cases_SOURCES = tests/unit/t_balance_cases.c tests/unit/balancerig.h
tests_unit_t_balance_cases_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_t_balance_cases_LDADD = $(HG_BALANCE_TEST_LIBS)
tests_unit_t_balance_model_SOURCES = tests/unit/t_balance_model.c tests/unit/balancerig.h
tests_unit_t_balance_model_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_t_balance_model_LDADD = $(HG_BALANCE_TEST_LIBS)

# The controller of execution tickets
if HAVE_CMOCKA
UNIT_TESTS += tests/unit/t_probe
endif
tests_unit_t_probe_SOURCES = tests/unit/t_probe.c
tests_unit_t_probe_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_t_probe_LDADD = libcore.a libbase.a $(CMOCKA_LIBS)
# Tickets
if HAVE_CMOCKA
UNIT_TESTS += tests/unit/t_ticket tests/unit/t_ticketline tests/unit/t_ticketturns tests/unit/t_heap \
	tests/unit/t_ticketthreads tests/unit/t_ticketorder tests/unit/t_ticketline_model
endif
HG_TICKET_TEST_LIBS = libcore.a libbase.a $(CMOCKA_LIBS) -lm
tests_unit_t_ticket_SOURCES = tests/unit/t_ticket.c tests/unit/ticketrig.h
tests_unit_t_ticket_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_t_ticket_LDADD = $(HG_TICKET_TEST_LIBS)
tests_unit_t_ticketline_SOURCES = tests/unit/t_ticketline.c tests/unit/ticketlineset.h
tests_unit_t_ticketline_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_t_ticketline_LDADD = $(HG_TICKET_TEST_LIBS)
tests_unit_t_ticketturns_SOURCES = tests/unit/t_ticketturns.c tests/unit/ticketlineset.h
tests_unit_t_ticketturns_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_t_ticketturns_LDADD = $(HG_TICKET_TEST_LIBS)
tests_unit_t_heap_SOURCES = tests/unit/t_heap.c
tests_unit_t_heap_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_t_heap_LDADD = libbase.a $(CMOCKA_LIBS)
if HAVE_CMOCKA
UNIT_TESTS += tests/unit/t_probe_adaptive
endif
tests_unit_t_probe_adaptive_SOURCES = tests/unit/t_probe_adaptive.c tests/unit/proberig.h
tests_unit_t_probe_adaptive_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_t_probe_adaptive_LDADD = libcore.a libbase.a $(CMOCKA_LIBS)
# Bind eviction and throttle
if HAVE_CMOCKA
UNIT_TESTS += tests/unit/t_bindthrottle tests/unit/t_bindwatch tests/unit/t_bindmodel \
	tests/unit/t_bindevent
endif
HG_BIND_TEST_LIBS = libcore.a libbase.a $(CMOCKA_LIBS) -lm
tests_unit_t_bindthrottle_SOURCES = tests/unit/t_bindthrottle.c tests/unit/bindhelp.h
tests_unit_t_bindthrottle_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_t_bindthrottle_LDADD = $(HG_BIND_TEST_LIBS)
tests_unit_t_bindwatch_SOURCES = tests/unit/t_bindwatch.c tests/unit/bindhelp.h
tests_unit_t_bindwatch_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_t_bindwatch_LDADD = $(HG_BIND_TEST_LIBS)
tests_unit_t_bindmodel_SOURCES = tests/unit/t_bindmodel.c tests/unit/bindhelp.h
tests_unit_t_bindmodel_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_t_bindmodel_LDADD = $(HG_BIND_TEST_LIBS)
tests_unit_t_bindevent_SOURCES = tests/unit/t_bindevent.c tests/unit/bindhelp.h
tests_unit_t_bindevent_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_t_bindevent_LDADD = $(HG_BIND_TEST_LIBS)
if HAVE_CMOCKA
UNIT_TESTS += tests/unit/t_load_arrivals
endif
tests_unit_t_load_arrivals_SOURCES = tests/unit/t_load_arrivals.c src/load/arrivals.c \
	src/load/gen.c src/load/parse.c src/load/rate.c
tests_unit_t_load_arrivals_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_t_load_arrivals_LDADD = $(CMOCKA_LIBS) -lm

# Options of tickets and binds
if HAVE_CMOCKA
UNIT_TESTS += tests/unit/t_conf_tickets tests/unit/t_publish_tickets
endif
tests_unit_t_conf_tickets_SOURCES = tests/unit/t_conf_tickets.c tests/unit/apphelp.h
tests_unit_t_conf_tickets_CFLAGS = $(t_app_cflags)
tests_unit_t_conf_tickets_LDADD = $(t_app_libs)
tests_unit_t_publish_tickets_SOURCES = tests/unit/t_publish_tickets.c tests/unit/apphelp.h
tests_unit_t_publish_tickets_CPPFLAGS = $(HG_LOGIN_TEST_CPPFLAGS)
tests_unit_t_publish_tickets_LDADD = $(HG_LOGIN_TEST_LIBS)
tests_unit_t_ticketthreads_SOURCES = tests/unit/t_ticketthreads.c
tests_unit_t_ticketthreads_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_t_ticketthreads_LDADD = $(HG_TICKET_TEST_LIBS) -lpthread
tests_unit_t_ticketorder_SOURCES = tests/unit/t_ticketorder.c
tests_unit_t_ticketorder_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_t_ticketorder_LDADD = $(HG_TICKET_TEST_LIBS)
tests_unit_t_ticketline_model_SOURCES = tests/unit/t_ticketline_model.c
tests_unit_t_ticketline_model_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_t_ticketline_model_LDADD = $(HG_TICKET_TEST_LIBS)

# headgatectl's top, without a terminal
if HAVE_CMOCKA
UNIT_TESTS += tests/unit/t_top
endif
tests_unit_t_top_SOURCES = tests/unit/t_top.c src/ctl/table.c src/ctl/topclient.c src/ctl/toppage.c src/ctl/topsample.c \
	src/ctl/topsum.c src/ctl/topview.c src/ctl/values.c
tests_unit_t_top_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS) $(JANSSON_CFLAGS)
tests_unit_t_top_LDADD = libbase.a $(CMOCKA_LIBS) $(JANSSON_LIBS) -lm
# Embedded stores that evict, copies of stores, and damaged files
if HAVE_CMOCKA
UNIT_TESTS += tests/unit/t_embedded_evict tests/unit/t_embedded_copy tests/unit/t_embedded_check
endif
tests_unit_t_embedded_evict_SOURCES = tests/unit/t_embedded_evict.c tests/unit/embeddedhelp.h
tests_unit_t_embedded_evict_CPPFLAGS = $(HG_EMBEDDED_TEST_CPPFLAGS)
tests_unit_t_embedded_evict_LDADD = $(HG_EMBEDDED_TEST_LIBS) -lm
tests_unit_t_embedded_copy_SOURCES = tests/unit/t_embedded_copy.c tests/unit/embeddedhelp.h
tests_unit_t_embedded_copy_CPPFLAGS = $(HG_EMBEDDED_TEST_CPPFLAGS)
tests_unit_t_embedded_copy_LDADD = $(HG_EMBEDDED_TEST_LIBS)
tests_unit_t_embedded_check_SOURCES = tests/unit/t_embedded_check.c tests/unit/embeddedhelp.h
tests_unit_t_embedded_check_CPPFLAGS = $(HG_EMBEDDED_TEST_CPPFLAGS)
tests_unit_t_embedded_check_LDADD = $(HG_EMBEDDED_TEST_LIBS)
# TLS
if HAVE_CMOCKA
UNIT_TESTS += tests/unit/t_tls
endif
tests_unit_t_tls_SOURCES = tests/unit/t_tls.c tests/unit/tlspair.h tests/unit/tlshelp.h
tests_unit_t_tls_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests/unit $(SSL_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_t_tls_LDADD = libio.a libbase.a $(SSL_LIBS) $(EVENT_LIBS) $(CMOCKA_LIBS)

# Restarts: inherited sockets, hand-over messages, what the service manager is told
if HAVE_CMOCKA
UNIT_TESTS += tests/unit/t_inherit tests/unit/t_notify
endif
tests_unit_t_inherit_SOURCES = tests/unit/t_inherit.c
tests_unit_t_inherit_CPPFLAGS = $(AM_CPPFLAGS) $(EVENT_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_t_inherit_LDADD = libapp.a libio.a libbase.a $(EVENT_LIBS) $(CMOCKA_LIBS)
tests_unit_t_notify_SOURCES = tests/unit/t_notify.c
tests_unit_t_notify_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_t_notify_LDADD = libapp.a libbase.a $(CMOCKA_LIBS)

# HTTP
if HAVE_CMOCKA
UNIT_TESTS += tests/unit/t_metrics tests/unit/t_webhistory tests/unit/t_webtext
endif
tests_unit_t_metrics_SOURCES = tests/unit/t_metrics.c
tests_unit_t_metrics_CPPFLAGS = $(HG_LOGIN_TEST_CPPFLAGS)
tests_unit_t_metrics_LDADD = $(HG_LOGIN_TEST_LIBS)
tests_unit_t_webhistory_SOURCES = tests/unit/t_webhistory.c
tests_unit_t_webhistory_CPPFLAGS = $(HG_LOGIN_TEST_CPPFLAGS) $(JANSSON_CFLAGS)
tests_unit_t_webhistory_LDADD = $(HG_LOGIN_TEST_LIBS)
tests_unit_t_webtext_SOURCES = tests/unit/t_webtext.c
tests_unit_t_webtext_CPPFLAGS = $(HG_LOGIN_TEST_CPPFLAGS) $(JANSSON_CFLAGS)
tests_unit_t_webtext_LDADD = $(HG_LOGIN_TEST_LIBS)

# tests/unit: whom TLS trusts
UNIT_TESTS += tests/unit/t_tlstrust
tests_unit_t_tlstrust_SOURCES = tests/unit/t_tlstrust.c tests/unit/tlspair.h tests/unit/tlshelp.h
tests_unit_t_tlstrust_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests/unit $(SSL_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_t_tlstrust_LDADD = libio.a libbase.a $(SSL_LIBS) $(EVENT_LIBS) $(CMOCKA_LIBS)
