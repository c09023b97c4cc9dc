# tests/unit
if HAVE_CMOCKA
UNIT_TESTS += \
	tests/unit/t_adminjson \
	tests/unit/t_conf \
	tests/unit/t_conf_check \
	tests/unit/t_conf_diff \
	tests/unit/t_conf_ring \
	tests/unit/t_conf_value \
	tests/unit/t_secret \
	tests/unit/t_state \
	tests/unit/t_users \
	tests/unit/t_yamldoc
endif

# Tests of src/app: the option table, users, secrets, state and JSON need that layer's files only.
t_app_cflags = $(AM_CFLAGS) $(CMOCKA_CFLAGS) $(YAML_CFLAGS) $(JANSSON_CFLAGS) $(CRYPTO_CFLAGS)
t_app_libs = libapp.a $(YAML_LIBS) $(JANSSON_LIBS) $(CRYPTO_LIBS) $(CMOCKA_LIBS)

tests_unit_t_adminjson_SOURCES = tests/unit/t_adminjson.c tests/unit/apphelp.h
tests_unit_t_adminjson_CFLAGS = $(t_app_cflags)
tests_unit_t_adminjson_LDADD = $(t_app_libs)
tests_unit_t_conf_SOURCES = tests/unit/t_conf.c tests/unit/apphelp.h
tests_unit_t_conf_CFLAGS = $(t_app_cflags)
tests_unit_t_conf_LDADD = $(t_app_libs)
tests_unit_t_conf_check_SOURCES = tests/unit/t_conf_check.c tests/unit/apphelp.h
tests_unit_t_conf_check_CFLAGS = $(t_app_cflags)
tests_unit_t_conf_check_LDADD = $(t_app_libs)
tests_unit_t_conf_diff_SOURCES = tests/unit/t_conf_diff.c tests/unit/apphelp.h
tests_unit_t_conf_diff_CFLAGS = $(t_app_cflags)
tests_unit_t_conf_diff_LDADD = $(t_app_libs)
tests_unit_t_conf_ring_SOURCES = tests/unit/t_conf_ring.c tests/unit/apphelp.h
tests_unit_t_conf_ring_CFLAGS = $(t_app_cflags) $(MEMCACHED_CFLAGS)
tests_unit_t_conf_ring_LDADD = $(t_app_libs) $(MEMCACHED_LIBS)
tests_unit_t_conf_value_SOURCES = tests/unit/t_conf_value.c tests/unit/apphelp.h
tests_unit_t_conf_value_CFLAGS = $(t_app_cflags)
tests_unit_t_conf_value_LDADD = $(t_app_libs)
tests_unit_t_secret_SOURCES = tests/unit/t_secret.c tests/unit/apphelp.h
tests_unit_t_secret_CFLAGS = $(t_app_cflags)
tests_unit_t_secret_LDADD = $(t_app_libs)
tests_unit_t_state_SOURCES = tests/unit/t_state.c tests/unit/apphelp.h
tests_unit_t_state_CFLAGS = $(t_app_cflags)
tests_unit_t_state_LDADD = $(t_app_libs)
tests_unit_t_users_SOURCES = tests/unit/t_users.c tests/unit/apphelp.h
tests_unit_t_users_CFLAGS = $(t_app_cflags)
tests_unit_t_users_LDADD = $(t_app_libs)
tests_unit_t_yamldoc_SOURCES = tests/unit/t_yamldoc.c tests/unit/apphelp.h
tests_unit_t_yamldoc_CFLAGS = $(t_app_cflags)
tests_unit_t_yamldoc_LDADD = $(t_app_libs)
