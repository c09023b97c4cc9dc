noinst_LIBRARIES += libfront.a
libfront_a_CPPFLAGS = $(AM_CPPFLAGS) $(EVENT_CFLAGS) $(XXHASH_CFLAGS)
libfront_a_SOURCES = src/front/answer.c src/front/answer.h src/front/answer_cost.c src/front/answer_in.h \
	src/front/answer_session.c src/front/answer_table.c src/front/cursor.c src/front/cursor.h \
	src/front/reader.c src/front/reader.h src/front/dispatch_in.h src/front/table.c src/front/table.h \
	src/front/table_batch.c src/front/table_in.h src/front/table_pool.c src/front/table_range.c \
	src/front/table_row.c src/front/tables.h \
	src/front/bucket.c src/front/bucket.h src/front/control.c src/front/directory.c \
	src/front/directory.h src/front/dispatch.c src/front/dispatch.h src/front/dispatch_end.c src/front/front.h \
	src/front/held.c src/front/held.h src/front/hot.c src/front/hot.h src/front/hotmem.c \
	src/front/hotmem.h src/front/hotshare.c src/front/hotshare.h src/front/job.c src/front/job.h src/front/lane.def \
	src/front/directory_families.c \
	src/front/directory.h src/front/dispatch.c src/front/dispatch.h src/front/front.h \
	src/front/held.c src/front/held.h src/front/hot.h src/front/job.c src/front/job.h src/front/lane.def \
	src/front/listener.c src/front/listener.h src/front/outcome.def src/front/request.h \
	src/front/session.c src/front/session.h src/front/session_identity.c src/front/worker.c \
	src/front/worker.h src/front/worker_stats.h \
	src/front/gate.c src/front/gate.def src/front/gate.h src/front/gateshare.c src/front/gateshare.h \
	src/front/bind.c src/front/bind.h src/front/bindboard.h src/front/evict.c src/front/evict.h
