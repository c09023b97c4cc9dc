noinst_LIBRARIES += libcore.a
libcore_a_SOURCES =
