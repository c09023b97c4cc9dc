noinst_LIBRARIES += libapp.a
libapp_a_SOURCES = \
	src/app/adminjson.h \
	src/app/conf.def \
	src/app/conf.h \
	src/app/conf_errors.h \
	src/app/conf_type.h \
	src/app/secret.h \
	src/app/state.h \
	src/app/users.h
