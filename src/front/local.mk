noinst_LIBRARIES += libfront.a
libfront_a_SOURCES =
