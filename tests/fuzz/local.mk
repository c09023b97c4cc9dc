# tests/fuzz: each target is always built as a replayer of its corpus, and with --enable-fuzzing
# (clang) as a fuzzer:  tests/fuzz/fuzz_frame -max_len=2048 a-new-folder tests/fuzz/corpus/frame
UNIT_TESTS += tests/fuzz/replay_cluster
UNIT_TESTS += tests/fuzz/replay_frame
UNIT_TESTS += tests/fuzz/replay_resp
UNIT_TESTS += tests/fuzz/replay_table
HG_REPLAY = tests/fuzz/replay.c tests/fuzz/fuzz.h
tests_fuzz_replay_cluster_SOURCES = $(HG_REPLAY) tests/fuzz/fuzz_cluster.c
tests_fuzz_replay_cluster_LDADD = libback.a libproto.a libbase.a $(HIREDIS_LIBS)
tests_fuzz_replay_frame_SOURCES = $(HG_REPLAY) tests/fuzz/fuzz_frame.c
tests_fuzz_replay_frame_LDADD = libproto.a libtablepb.a libbase.a $(PROTOBUF_C_LIBS)
tests_fuzz_replay_resp_SOURCES = $(HG_REPLAY) tests/fuzz/fuzz_resp.c
tests_fuzz_replay_resp_LDADD = libback.a libio.a libbase.a $(HIREDIS_LIBS) $(CRYPTO_LIBS)
tests_fuzz_replay_table_SOURCES = $(HG_REPLAY) tests/fuzz/fuzz_table.c
tests_fuzz_replay_table_LDADD = libproto.a libtablepb.a libbase.a $(PROTOBUF_C_LIBS)
EXTRA_DIST += tests/fuzz/corpus
EXTRA_DIST += tests/fuzz/seeds.py
EXTRA_DIST += tests/fuzz/seeds_cluster.py
EXTRA_DIST += tests/fuzz/seeds_resp.py
EXTRA_DIST += tests/fuzz/seeds_table.py

if FUZZING
HG_FUZZING_FILES = tests/fuzz/fuzz.h $(libproto_a_SOURCES) src/base/arena.c
HG_FUZZING_COMPILE = $(AM_CFLAGS) -fsanitize=fuzzer,address,undefined \
	-fno-sanitize-recover=all
HG_FUZZING_LINK = $(AM_LDFLAGS) -fsanitize=fuzzer,address,undefined
noinst_PROGRAMS += tests/fuzz/fuzz_cluster
noinst_PROGRAMS += tests/fuzz/fuzz_frame
noinst_PROGRAMS += tests/fuzz/fuzz_resp
noinst_PROGRAMS += tests/fuzz/fuzz_table
tests_fuzz_fuzz_frame_SOURCES = tests/fuzz/fuzz_frame.c $(HG_FUZZING_FILES)
nodist_tests_fuzz_fuzz_frame_SOURCES = $(nodist_libtablepb_a_SOURCES)
tests_fuzz_fuzz_frame_CFLAGS = $(HG_FUZZING_COMPILE)
tests_fuzz_fuzz_frame_LDFLAGS = $(HG_FUZZING_LINK)
tests_fuzz_fuzz_frame_LDADD = $(PROTOBUF_C_LIBS)
tests_fuzz_fuzz_table_SOURCES = tests/fuzz/fuzz_table.c $(HG_FUZZING_FILES)
nodist_tests_fuzz_fuzz_table_SOURCES = $(nodist_libtablepb_a_SOURCES)
tests_fuzz_fuzz_table_CFLAGS = $(HG_FUZZING_COMPILE)
tests_fuzz_fuzz_table_LDFLAGS = $(HG_FUZZING_LINK)
tests_fuzz_fuzz_table_LDADD = $(PROTOBUF_C_LIBS)
tests_fuzz_fuzz_cluster_SOURCES = tests/fuzz/fuzz_cluster.c src/back/slotsreply.c \
	src/proto/keyslot.c src/proto/redirect.c
tests_fuzz_fuzz_cluster_CFLAGS = $(HG_FUZZING_COMPILE)
tests_fuzz_fuzz_cluster_LDFLAGS = $(HG_FUZZING_LINK)
tests_fuzz_fuzz_cluster_LDADD = $(HIREDIS_LIBS)
tests_fuzz_fuzz_resp_SOURCES = tests/fuzz/fuzz_resp.c tests/fuzz/fuzz.h src/back/redis_dialect.c \
	src/back/redis_error.c src/back/redis_login.c src/back/redis_read.c src/back/redis_rows.c \
	src/back/redis_script.c src/back/redis_write.c src/back/redis_write_script.c src/io/out.c \
	src/base/blob.c
tests_fuzz_fuzz_resp_CFLAGS = $(HG_FUZZING_COMPILE)
tests_fuzz_fuzz_resp_LDFLAGS = $(HG_FUZZING_LINK)
tests_fuzz_fuzz_resp_LDADD = $(HIREDIS_LIBS) $(CRYPTO_LIBS)
endif
