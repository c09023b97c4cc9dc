noinst_LIBRARIES += libback.a
libback_a_CPPFLAGS = $(AM_CPPFLAGS) $(EVENT_CFLAGS) $(LMDB_CFLAGS)
libback_a_SOURCES =
libback_a_SOURCES += src/back/store.h src/back/item.c src/back/item.h \
	src/back/embedded.c src/back/embedded.h src/back/embedded_batch.c src/back/embedded_batch.h \
	src/back/embedded_db.c src/back/embedded_db.h src/back/embedded_read.c \
	src/back/embedded_record.h src/back/embedded_shared.c src/back/embedded_shared.h \
	src/back/embedded_stats.def src/back/embedded_stats.h src/back/embedded_sweep.c \
	src/back/embedded_sweep.h src/back/embedded_tenant.c src/back/embedded_tenant.h \
	src/back/embedded_writer.c src/back/embedded_writer.h
