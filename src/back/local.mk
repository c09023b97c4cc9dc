noinst_LIBRARIES += libback.a
libback_a_CPPFLAGS = $(AM_CPPFLAGS) $(EVENT_CFLAGS) $(LMDB_CFLAGS) $(MEMCACHED_CFLAGS) \
	$(XXHASH_CFLAGS)
libback_a_SOURCES = src/back/store.h
# servers, and memcached
libback_a_SOURCES += \
	src/back/addrs.h \
	src/back/dialect.c src/back/dialect.h \
	src/back/domain.c src/back/domain.h src/back/domain_plan.c \
	src/back/flush.c src/back/flush.h \
	src/back/hub.c src/back/hub.h \
	src/back/identity.c src/back/identity.h \
	src/back/lease.c src/back/lease.h \
	src/back/link.c src/back/link.h src/back/link_in.c src/back/link_in.h src/back/link_move.c src/back/link_tls.c \
	src/back/link_types.h src/back/uptls.c src/back/uptls.h \
	src/back/memcached.c src/back/memcached.h \
	src/back/pool.c src/back/pool.h src/back/pool_in.h src/back/pool_links.c \
	src/back/relay.c src/back/relay.h src/back/relay_owner.c src/back/relay_port.c src/back/relay_port.h \
	src/back/pool.c src/back/pool.h src/back/pool_connect.c src/back/pool_in.h \
	src/back/pool_links.c src/back/pool_slow.c src/back/pool_stats.c src/back/pool_stats.def src/back/pool_stats.h \
	src/back/quarantine.c src/back/quarantine.h src/back/quarantine_in.h \
	src/back/quarantine_link.c \
	src/back/remote.c src/back/remote.h \
	src/back/resolve.c src/back/resolve.h \
	src/back/ring.c src/back/ring.h \
	src/back/server.c src/back/server.h \
	src/back/tie.c src/back/tie.h \
	src/back/upstream.c src/back/upstream.h \
	src/back/upstream_stats.c src/back/upstream_stats.def src/back/upstream_stats.h
# embedded
libback_a_SOURCES += src/back/item.c src/back/item.h \
	src/back/embedded.c src/back/embedded.h src/back/embedded_batch.c src/back/embedded_batch.h \
	src/back/embedded_check.c src/back/embedded_check.h src/back/embedded_copy.c src/back/embedded_copy.h \
	src/back/embedded_evict.c src/back/embedded_evict.h \
	src/back/embedded_install.c src/back/embedded_install.h src/back/embedded_page.h \
	src/back/embedded_put.c src/back/embedded_put.h \
	src/back/embedded_db.c src/back/embedded_db.h src/back/embedded_range.c src/back/embedded_read.c \
	src/back/embedded_record.h src/back/embedded_shared.c src/back/embedded_shared.h \
	src/back/embedded_stats.def src/back/embedded_stats.h src/back/embedded_sweep.c \
	src/back/embedded_sweep.h src/back/embedded_tenant.c src/back/embedded_tenant.h \
	src/back/embedded_writer.c src/back/embedded_writer.h
# rows
libback_a_SOURCES += src/back/rows.c src/back/rows.h src/back/rowgate.c src/back/rowgate.h \
	src/back/rowguard.c
# Redis Cluster
libback_a_SOURCES += src/back/rediscluster.c src/back/rediscluster.h \
	src/back/rediscluster_again.c src/back/rediscluster_in.h src/back/rediscluster_refresh.c \
	src/back/rediscluster_shared.c src/back/rediscluster_stats.def \
	src/back/topology.c src/back/topology.h \
	src/back/slotsask.c src/back/slotsask.h src/back/slotsreply.c src/back/slotsreply.h
# redis
libback_a_CPPFLAGS += $(HIREDIS_CFLAGS) $(CRYPTO_CFLAGS)
libback_a_SOURCES += \
	src/back/redis.c src/back/redis.h \
	src/back/redis_dialect.c src/back/redis_dialect.h \
	src/back/redis_error.c src/back/redis_error.def src/back/redis_error.h \
	src/back/redis_login.c src/back/redis_put.h \
	src/back/redis_range.c src/back/redis_range.h \
	src/back/redis_read.c src/back/redis_read.h \
	src/back/redis_rows.c src/back/redis_rows.h \
	src/back/redis_script.c src/back/redis_script.def src/back/redis_script.h \
	src/back/redis_write.c src/back/redis_write.h src/back/redis_write_script.c
