noinst_LIBRARIES += libfront.a
libfront_a_CPPFLAGS = $(AM_CPPFLAGS) $(EVENT_CFLAGS) $(XXHASH_CFLAGS)
libfront_a_SOURCES = src/front/answer.c src/front/answer.h src/front/answer_session.c \
	src/front/bucket.c src/front/bucket.h src/front/control.c src/front/directory.c \
	src/front/directory.h src/front/dispatch.c src/front/dispatch.h src/front/front.h \
	src/front/held.c src/front/held.h src/front/hot.c src/front/hot.h src/front/hotmem.c \
	src/front/hotmem.h src/front/hotshare.c src/front/hotshare.h src/front/job.c src/front/job.h src/front/lane.def \
	src/front/listener.c src/front/listener.h src/front/outcome.def src/front/request.h \
	src/front/session.c src/front/session.h src/front/session_identity.c src/front/worker.c \
	src/front/worker.h src/front/worker_stats.h
