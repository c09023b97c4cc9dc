noinst_LIBRARIES += libapp.a
libapp_a_SOURCES =
