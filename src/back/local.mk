noinst_LIBRARIES += libback.a
libback_a_SOURCES =
