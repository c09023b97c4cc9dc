noinst_LIBRARIES += libapp.a
libapp_a_CFLAGS = $(AM_CFLAGS) $(YAML_CFLAGS) $(JANSSON_CFLAGS) $(CRYPTO_CFLAGS)
libapp_a_SOURCES = \
	src/app/adminjson.h \
	src/app/conf.def \
	src/app/conf.h \
	src/app/conf_address.c \
	src/app/conf_build.h \
	src/app/conf_check.c \
	src/app/conf_default.c \
	src/app/conf_diff.c \
	src/app/conf_errors.c src/app/conf_errors.h \
	src/app/conf_parse.c \
	src/app/conf_print.c \
	src/app/conf_ring.c \
	src/app/conf_table.c src/app/conf_table.h \
	src/app/conf_tree.c \
	src/app/conf_type.h \
	src/app/conf_value.c \
	src/app/file.c src/app/file.h \
	src/app/secret.h \
	src/app/state.h \
	src/app/users.h \
	src/app/yamldoc.c src/app/yamldoc.h
