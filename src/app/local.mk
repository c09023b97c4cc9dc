noinst_LIBRARIES += libapp.a
libapp_a_CPPFLAGS = $(AM_CPPFLAGS) $(EVENT_CFLAGS) $(GSASL_CFLAGS) $(MEMCACHED_CFLAGS) \
	$(LMDB_CFLAGS) $(XXHASH_CFLAGS) $(YAML_CFLAGS) $(JANSSON_CFLAGS) $(CRYPTO_CFLAGS)
libapp_a_SOURCES = \
	src/app/adminjson.c src/app/adminjson.h \
	src/app/conf.def \
	src/app/conf.h \
	src/app/conf_address.c \
	src/app/conf_build.h \
	src/app/conf_check.c \
	src/app/conf_default.c \
	src/app/conf_diff.c \
	src/app/conf_fields.h \
	src/app/conf_errors.c src/app/conf_errors.h \
	src/app/conf_parse.c \
	src/app/conf_print.c \
	src/app/conf_ring.c src/app/conf_stores.c \
	src/app/conf_table.c src/app/conf_table.h \
	src/app/conf_tree.c \
	src/app/conf_type.h \
	src/app/conf_value.c \
	src/app/dialogue.c src/app/dialogue.h \
	src/app/hotkeys.c src/app/hotkeys.h src/app/hotkeys_memory.c src/app/hotkeys_tenant.c \
	src/app/hotrows.c src/app/hotrows.h \
	src/app/file.c src/app/file.h \
	src/app/login.c src/app/login.h src/app/login_helpers.c src/app/login_own.h \
	src/app/login_stats.def \
	src/app/password.c src/app/password.h \
	src/app/secret.c src/app/secret.h \
	src/app/state.c src/app/state.h \
	src/app/state_apply.c src/app/state_build.h src/app/state_file.c \
	src/app/strictjson.c src/app/strictjson.h \
	src/app/users.c src/app/users.h \
	src/app/users_build.h src/app/users_parse.c \
	src/app/yamldoc.c src/app/yamldoc.h \
	src/app/admin.c src/app/conf_list.c src/app/hooks.c src/app/process.c src/app/process.h \
	src/app/publish.c src/app/rights.c src/app/rights.h src/app/stats.c src/app/stats.h src/app/stats_bucket.c \
	src/app/stats_hotkeys.c src/app/stats_round.c src/app/upstreams.c \
	src/app/gates.c src/app/gates.h src/app/binds.c src/app/binds.h
