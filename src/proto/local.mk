noinst_LIBRARIES += libproto.a
libproto_a_SOURCES =
