noinst_LIBRARIES += libbase.a
libbase_a_SOURCES = src/base/attr.h src/base/span.h src/base/bytes.h src/base/prng.h
