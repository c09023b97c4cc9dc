noinst_LIBRARIES += libbase.a
libbase_a_SOURCES = src/base/arena.c src/base/arena.h src/base/attr.h src/base/blob.c src/base/blob.h src/base/bytes.h \
	src/base/clock.h src/base/coarsehist.c src/base/coarsehist.h src/base/codec.h src/base/counter.h src/base/event.c src/base/event.h src/base/grow.h src/base/heap.c src/base/heap.h src/base/hist.c src/base/hist.h \
	src/base/list.h src/base/log.c src/base/log.h src/base/op.def src/base/op.h \
	src/base/privilege.def src/base/privilege.h src/base/probe_point.h src/base/prng.h src/base/slab.c src/base/slab.h \
	src/base/span.h src/base/throttle.c src/base/throttle.def src/base/throttle.h
