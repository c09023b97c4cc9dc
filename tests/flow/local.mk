# tests/flow

# Servers behind
if HAVE_CMOCKA
UNIT_TESTS += tests/flow/t_link tests/flow/t_link_values tests/flow/t_pool tests/flow/t_line \
	tests/flow/t_outage tests/flow/t_hang tests/flow/t_memcached tests/flow/t_memcached_real \
	tests/flow/t_workers
endif
RIG = tests/flow/rig.c tests/flow/rig.h tests/flow/fake.c tests/flow/fake.h
PAIR = tests/flow/pair.c tests/flow/pair.h $(RIG)
SOLO = tests/flow/solo.c tests/flow/solo.h $(RIG)
DAEMON = tests/flow/daemon.c tests/flow/daemon.h $(RIG)
HG_RIG_CPPFLAGS = $(HG_BACK_TEST_CPPFLAGS) -I$(top_srcdir)/tests/flow
tests_flow_t_link_SOURCES = tests/flow/t_link.c $(PAIR)
tests_flow_t_link_CPPFLAGS = $(HG_RIG_CPPFLAGS)
tests_flow_t_link_LDADD = $(HG_BACK_TEST_LIBS)
tests_flow_t_link_values_SOURCES = tests/flow/t_link_values.c $(PAIR)
tests_flow_t_link_values_CPPFLAGS = $(HG_RIG_CPPFLAGS)
tests_flow_t_link_values_LDADD = $(HG_BACK_TEST_LIBS)
tests_flow_t_pool_SOURCES = tests/flow/t_pool.c $(SOLO)
tests_flow_t_pool_CPPFLAGS = $(HG_RIG_CPPFLAGS)
tests_flow_t_pool_LDADD = $(HG_BACK_TEST_LIBS)
tests_flow_t_line_SOURCES = tests/flow/t_line.c $(SOLO)
tests_flow_t_line_CPPFLAGS = $(HG_RIG_CPPFLAGS)
tests_flow_t_line_LDADD = $(HG_BACK_TEST_LIBS)
tests_flow_t_outage_SOURCES = tests/flow/t_outage.c $(SOLO)
tests_flow_t_outage_CPPFLAGS = $(HG_RIG_CPPFLAGS)
tests_flow_t_outage_LDADD = $(HG_BACK_TEST_LIBS)
tests_flow_t_hang_SOURCES = tests/flow/t_hang.c $(SOLO)
tests_flow_t_hang_CPPFLAGS = $(HG_RIG_CPPFLAGS)
tests_flow_t_hang_LDADD = $(HG_BACK_TEST_LIBS)
tests_flow_t_memcached_SOURCES = tests/flow/t_memcached.c $(RIG)
tests_flow_t_memcached_CPPFLAGS = $(HG_RIG_CPPFLAGS)
tests_flow_t_memcached_LDADD = $(HG_BACK_TEST_LIBS)
tests_flow_t_memcached_real_SOURCES = tests/flow/t_memcached_real.c $(DAEMON)
tests_flow_t_memcached_real_CPPFLAGS = $(HG_RIG_CPPFLAGS)
tests_flow_t_memcached_real_LDADD = $(HG_BACK_TEST_LIBS)
tests_flow_t_workers_SOURCES = tests/flow/t_workers.c $(DAEMON)
tests_flow_t_workers_CPPFLAGS = $(HG_RIG_CPPFLAGS)
tests_flow_t_workers_LDADD = $(HG_BACK_TEST_LIBS)

# The client side
if HAVE_CMOCKA
UNIT_TESTS += tests/flow/t_session tests/flow/t_session_end tests/flow/t_session_noise \
	tests/flow/t_session_pressure tests/flow/t_dispatch tests/flow/t_dispatch_identity \
	tests/flow/t_held_credits tests/flow/t_held_refusals tests/flow/t_worker \
	tests/flow/t_worker_listener tests/flow/t_worker_stress
check_LIBRARIES = tests/flow/libstage.a
endif
HG_STAGE_CPPFLAGS = $(AM_CPPFLAGS) $(EVENT_CFLAGS) $(CMOCKA_CFLAGS) -I$(top_srcdir)/tests/flow
HG_STAGE_LIBS = tests/flow/libstage.a libfront.a $(HG_BACK_TEST_LIBS)
tests_flow_libstage_a_CPPFLAGS = $(HG_STAGE_CPPFLAGS)
tests_flow_libstage_a_SOURCES = tests/flow/scene.h tests/flow/tight.h tests/flow/stage.c tests/flow/stage.h \
	tests/flow/stagehooks.c tests/flow/stagehooks.h tests/flow/fakestore.c \
	tests/flow/fakestore.h tests/flow/client.c tests/flow/client.h
tests_flow_t_session_SOURCES = tests/flow/t_session.c
tests_flow_t_session_CPPFLAGS = $(HG_STAGE_CPPFLAGS)
tests_flow_t_session_LDADD = $(HG_STAGE_LIBS)
tests_flow_t_session_pressure_SOURCES = tests/flow/t_session_pressure.c
tests_flow_t_session_pressure_CPPFLAGS = $(HG_STAGE_CPPFLAGS)
tests_flow_t_session_pressure_LDADD = $(HG_STAGE_LIBS)
tests_flow_t_session_end_SOURCES = tests/flow/t_session_end.c
tests_flow_t_session_end_CPPFLAGS = $(HG_STAGE_CPPFLAGS)
tests_flow_t_session_end_LDADD = $(HG_STAGE_LIBS)
tests_flow_t_dispatch_SOURCES = tests/flow/t_dispatch.c
tests_flow_t_dispatch_CPPFLAGS = $(HG_STAGE_CPPFLAGS)
tests_flow_t_dispatch_LDADD = $(HG_STAGE_LIBS)
tests_flow_t_dispatch_identity_SOURCES = tests/flow/t_dispatch_identity.c
tests_flow_t_dispatch_identity_CPPFLAGS = $(HG_STAGE_CPPFLAGS)
tests_flow_t_dispatch_identity_LDADD = $(HG_STAGE_LIBS)
tests_flow_t_held_credits_SOURCES = tests/flow/t_held_credits.c
tests_flow_t_held_credits_CPPFLAGS = $(HG_STAGE_CPPFLAGS)
tests_flow_t_held_credits_LDADD = $(HG_STAGE_LIBS)
tests_flow_t_worker_SOURCES = tests/flow/t_worker.c
tests_flow_t_worker_CPPFLAGS = $(HG_STAGE_CPPFLAGS)
tests_flow_t_worker_LDADD = $(HG_STAGE_LIBS)
tests_flow_t_worker_stress_SOURCES = tests/flow/t_worker_stress.c
tests_flow_t_worker_stress_CPPFLAGS = $(HG_STAGE_CPPFLAGS)
tests_flow_t_worker_stress_LDADD = $(HG_STAGE_LIBS)
tests_flow_t_worker_listener_SOURCES = tests/flow/t_worker_listener.c
tests_flow_t_worker_listener_CPPFLAGS = $(HG_STAGE_CPPFLAGS)
tests_flow_t_worker_listener_LDADD = $(HG_STAGE_LIBS)
tests_flow_t_held_refusals_SOURCES = tests/flow/t_held_refusals.c
tests_flow_t_held_refusals_CPPFLAGS = $(HG_STAGE_CPPFLAGS)
tests_flow_t_held_refusals_LDADD = $(HG_STAGE_LIBS)
tests_flow_t_session_noise_SOURCES = tests/flow/t_session_noise.c
tests_flow_t_session_noise_CPPFLAGS = $(HG_STAGE_CPPFLAGS)
tests_flow_t_session_noise_LDADD = $(HG_STAGE_LIBS)

# Rows
if HAVE_CMOCKA
UNIT_TESTS += tests/flow/t_rows tests/flow/t_rows_end tests/flow/t_rowguard tests/flow/t_rows_real
endif
ROWHELP = tests/flow/rowhelp.c tests/flow/rowhelp.h tests/flow/rowscene.h
HG_ROW_LIBS = tests/flow/libstage.a libfront.a $(HG_BACK_TEST_LIBS)
tests_flow_t_rows_SOURCES = tests/flow/t_rows.c $(ROWHELP)
tests_flow_t_rows_CPPFLAGS = $(HG_STAGE_CPPFLAGS)
tests_flow_t_rows_LDADD = $(HG_ROW_LIBS)
tests_flow_t_rows_end_SOURCES = tests/flow/t_rows_end.c $(ROWHELP)
tests_flow_t_rows_end_CPPFLAGS = $(HG_STAGE_CPPFLAGS)
tests_flow_t_rows_end_LDADD = $(HG_ROW_LIBS)
tests_flow_t_rowguard_SOURCES = tests/flow/t_rowguard.c $(ROWHELP)
tests_flow_t_rowguard_CPPFLAGS = $(HG_STAGE_CPPFLAGS)
tests_flow_t_rowguard_LDADD = $(HG_ROW_LIBS)
tests_flow_t_rows_real_SOURCES = tests/flow/t_rows_real.c $(ROWHELP) $(DAEMON)
tests_flow_t_rows_real_CPPFLAGS = $(HG_RIG_CPPFLAGS)
tests_flow_t_rows_real_LDADD = $(HG_ROW_LIBS)

# Hot keys: the client side and housekeeping
if HAVE_CMOCKA
UNIT_TESTS += tests/flow/t_hot tests/flow/t_hot_epochs
endif
HG_HOT_FLOW_LIBS = tests/flow/libstage.a libapp.a libfront.a $(HG_BACK_TEST_LIBS)
tests_flow_t_hot_SOURCES = tests/flow/t_hot.c tests/flow/hotscene.h
tests_flow_t_hot_CPPFLAGS = $(HG_STAGE_CPPFLAGS)
tests_flow_t_hot_LDADD = $(HG_HOT_FLOW_LIBS)
tests_flow_t_hot_epochs_SOURCES = tests/flow/t_hot_epochs.c tests/flow/hotscene.h
tests_flow_t_hot_epochs_CPPFLAGS = $(HG_STAGE_CPPFLAGS)
tests_flow_t_hot_epochs_LDADD = $(HG_HOT_FLOW_LIBS)

# Table requests
if HAVE_CMOCKA
UNIT_TESTS += tests/flow/t_table tests/flow/t_table_batch tests/flow/t_table_range \
	tests/flow/t_table_session
endif
TABLESCENE = tests/flow/tablescene.c tests/flow/tablescene.h tests/flow/rowhelp.c tests/flow/rowhelp.h
HG_TABLE_TEST_CPPFLAGS = $(HG_STAGE_CPPFLAGS) $(PROTOBUF_C_CFLAGS)
tests_flow_t_table_SOURCES = tests/flow/t_table.c $(TABLESCENE)
tests_flow_t_table_CPPFLAGS = $(HG_TABLE_TEST_CPPFLAGS)
tests_flow_t_table_LDADD = $(HG_ROW_LIBS)
tests_flow_t_table_batch_SOURCES = tests/flow/t_table_batch.c $(TABLESCENE)
tests_flow_t_table_batch_CPPFLAGS = $(HG_TABLE_TEST_CPPFLAGS)
tests_flow_t_table_batch_LDADD = $(HG_ROW_LIBS)
tests_flow_t_table_range_SOURCES = tests/flow/t_table_range.c $(TABLESCENE)
tests_flow_t_table_range_CPPFLAGS = $(HG_TABLE_TEST_CPPFLAGS)
tests_flow_t_table_range_LDADD = $(HG_ROW_LIBS)
tests_flow_t_table_session_SOURCES = tests/flow/t_table_session.c $(TABLESCENE)
tests_flow_t_table_session_CPPFLAGS = $(HG_TABLE_TEST_CPPFLAGS)
tests_flow_t_table_session_LDADD = $(HG_ROW_LIBS)

# Redis Cluster
if HAVE_CMOCKA
UNIT_TESTS += tests/flow/t_slotsask tests/flow/t_rediscluster \
	tests/flow/t_rediscluster_failover tests/flow/t_rediscluster_odd \
	tests/flow/t_rediscluster_threads
endif
CLUSTERD = tests/flow/clusterd.c tests/flow/clusterd.h $(RIG)
HG_CLUSTERD_CPPFLAGS = $(HG_RIG_CPPFLAGS) $(HIREDIS_CFLAGS)
tests_flow_t_slotsask_SOURCES = tests/flow/t_slotsask.c $(CLUSTERD)
tests_flow_t_slotsask_CPPFLAGS = $(HG_CLUSTERD_CPPFLAGS)
tests_flow_t_slotsask_LDADD = $(HG_BACK_TEST_LIBS)
CLUSTERSCENE = tests/flow/clusterscene.c tests/flow/clusterscene.h $(CLUSTERD)
tests_flow_t_rediscluster_SOURCES = tests/flow/t_rediscluster.c $(CLUSTERSCENE)
tests_flow_t_rediscluster_CPPFLAGS = $(HG_CLUSTERD_CPPFLAGS)
tests_flow_t_rediscluster_LDADD = $(HG_BACK_TEST_LIBS)
tests_flow_t_rediscluster_failover_SOURCES = tests/flow/t_rediscluster_failover.c $(CLUSTERSCENE)
tests_flow_t_rediscluster_failover_CPPFLAGS = $(HG_CLUSTERD_CPPFLAGS)
tests_flow_t_rediscluster_failover_LDADD = $(HG_BACK_TEST_LIBS)
tests_flow_t_rediscluster_threads_SOURCES = tests/flow/t_rediscluster_threads.c $(CLUSTERSCENE)
tests_flow_t_rediscluster_threads_CPPFLAGS = $(HG_CLUSTERD_CPPFLAGS)
tests_flow_t_rediscluster_threads_LDADD = $(HG_BACK_TEST_LIBS)
tests_flow_t_rediscluster_odd_SOURCES = tests/flow/t_rediscluster_odd.c tests/flow/fakenode.c \
	tests/flow/fakenode.h $(CLUSTERSCENE)
tests_flow_t_rediscluster_odd_CPPFLAGS = $(HG_CLUSTERD_CPPFLAGS)
tests_flow_t_rediscluster_odd_LDADD = $(HG_BACK_TEST_LIBS)
# Redis
if HAVE_CMOCKA
UNIT_TESTS += tests/flow/t_redis_script tests/flow/t_redis_real tests/flow/t_redis_again \
	tests/flow/t_redis_fake tests/flow/t_redis_rows
endif
REDISD = tests/flow/redisd.c tests/flow/redisd.h $(DAEMON)
HG_REDIS_TEST_CPPFLAGS = $(HG_RIG_CPPFLAGS) $(HIREDIS_CFLAGS)
tests_flow_t_redis_script_SOURCES = tests/flow/t_redis_script.c $(REDISD)
tests_flow_t_redis_script_CPPFLAGS = $(HG_REDIS_TEST_CPPFLAGS)
tests_flow_t_redis_script_LDADD = $(HG_BACK_TEST_LIBS)
# Logins of links, ties of calls
if HAVE_CMOCKA
UNIT_TESTS += tests/flow/t_link_login tests/flow/t_tie
endif
tests_flow_t_link_login_SOURCES = tests/flow/t_link_login.c $(PAIR)
tests_flow_t_link_login_CPPFLAGS = $(HG_RIG_CPPFLAGS)
tests_flow_t_link_login_LDADD = $(HG_BACK_TEST_LIBS)
tests_flow_t_tie_SOURCES = tests/flow/t_tie.c $(PAIR)
tests_flow_t_tie_CPPFLAGS = $(HG_RIG_CPPFLAGS)
tests_flow_t_tie_LDADD = $(HG_BACK_TEST_LIBS)
REDISSCENE = tests/flow/redisscene.h $(REDISD)
tests_flow_t_redis_real_SOURCES = tests/flow/t_redis_real.c $(REDISSCENE)
tests_flow_t_redis_real_CPPFLAGS = $(HG_REDIS_TEST_CPPFLAGS)
tests_flow_t_redis_real_LDADD = $(HG_BACK_TEST_LIBS)

# Calls that another worker carries out
if HAVE_CMOCKA
UNIT_TESTS += tests/flow/t_relay tests/flow/t_relay_threads
endif
tests_flow_t_relay_SOURCES = tests/flow/t_relay.c $(RIG)
tests_flow_t_relay_CPPFLAGS = $(HG_RIG_CPPFLAGS)
tests_flow_t_relay_LDADD = $(HG_BACK_TEST_LIBS)
tests_flow_t_relay_threads_SOURCES = tests/flow/t_relay_threads.c $(DAEMON)
tests_flow_t_relay_threads_CPPFLAGS = $(HG_RIG_CPPFLAGS)
tests_flow_t_relay_threads_LDADD = $(HG_BACK_TEST_LIBS)
# Connections between identities
if HAVE_CMOCKA
UNIT_TESTS += tests/flow/t_domain tests/flow/t_domain_share tests/flow/t_domain_threads \
	tests/flow/t_domain_redis
endif
CROWD = tests/flow/crowd.c tests/flow/crowd.h $(SOLO)
tests_flow_t_domain_SOURCES = tests/flow/t_domain.c $(CROWD)
tests_flow_t_domain_CPPFLAGS = $(HG_RIG_CPPFLAGS)
tests_flow_t_domain_LDADD = $(HG_BACK_TEST_LIBS)
tests_flow_t_domain_share_SOURCES = tests/flow/t_domain_share.c $(CROWD)
tests_flow_t_domain_share_CPPFLAGS = $(HG_RIG_CPPFLAGS)
tests_flow_t_domain_share_LDADD = $(HG_BACK_TEST_LIBS)
tests_flow_t_redis_again_SOURCES = tests/flow/t_redis_again.c $(REDISSCENE)
tests_flow_t_redis_again_CPPFLAGS = $(HG_REDIS_TEST_CPPFLAGS)
tests_flow_t_redis_again_LDADD = $(HG_BACK_TEST_LIBS)
tests_flow_t_redis_fake_SOURCES = tests/flow/t_redis_fake.c $(REDISSCENE)
tests_flow_t_redis_fake_CPPFLAGS = $(HG_REDIS_TEST_CPPFLAGS)
tests_flow_t_redis_fake_LDADD = $(HG_BACK_TEST_LIBS)
tests_flow_t_redis_rows_SOURCES = tests/flow/t_redis_rows.c $(REDISSCENE)
tests_flow_t_redis_rows_CPPFLAGS = $(HG_REDIS_TEST_CPPFLAGS)
tests_flow_t_redis_rows_LDADD = $(HG_BACK_TEST_LIBS)
# The tests of stores once more, for a worker whose calls another one carries out
if HAVE_CMOCKA
UNIT_TESTS += tests/flow/t_redis_real_relayed tests/flow/t_redis_rows_relayed \
	tests/flow/t_redis_again_relayed tests/flow/t_rediscluster_relayed
endif
tests_flow_t_redis_real_relayed_SOURCES = tests/flow/t_redis_real.c $(REDISSCENE)
tests_flow_t_redis_real_relayed_CPPFLAGS = $(HG_REDIS_TEST_CPPFLAGS) -DSCENE_RELAYED
tests_flow_t_redis_real_relayed_LDADD = $(HG_BACK_TEST_LIBS)
tests_flow_t_redis_rows_relayed_SOURCES = tests/flow/t_redis_rows.c $(REDISSCENE)
tests_flow_t_redis_rows_relayed_CPPFLAGS = $(HG_REDIS_TEST_CPPFLAGS) -DSCENE_RELAYED
tests_flow_t_redis_rows_relayed_LDADD = $(HG_BACK_TEST_LIBS)
tests_flow_t_redis_again_relayed_SOURCES = tests/flow/t_redis_again.c $(REDISSCENE)
tests_flow_t_redis_again_relayed_CPPFLAGS = $(HG_REDIS_TEST_CPPFLAGS) -DSCENE_RELAYED
tests_flow_t_redis_again_relayed_LDADD = $(HG_BACK_TEST_LIBS)
tests_flow_t_rediscluster_relayed_SOURCES = tests/flow/t_rediscluster.c $(CLUSTERSCENE)
tests_flow_t_rediscluster_relayed_CPPFLAGS = $(HG_CLUSTERD_CPPFLAGS) -DSCENE_RELAYED
tests_flow_t_rediscluster_relayed_LDADD = $(HG_BACK_TEST_LIBS)
tests_flow_t_domain_threads_SOURCES = tests/flow/t_domain_threads.c $(RIG)
tests_flow_t_domain_threads_CPPFLAGS = $(HG_RIG_CPPFLAGS)
tests_flow_t_domain_threads_LDADD = $(HG_BACK_TEST_LIBS)
tests_flow_t_domain_redis_SOURCES = tests/flow/t_domain_redis.c $(REDISSCENE)
tests_flow_t_domain_redis_CPPFLAGS = $(HG_REDIS_TEST_CPPFLAGS)
tests_flow_t_domain_redis_LDADD = $(HG_BACK_TEST_LIBS)
# Slots whose call was given up
if HAVE_CMOCKA
UNIT_TESTS += tests/flow/t_strand
endif
tests_flow_t_strand_SOURCES = tests/flow/t_strand.c $(SOLO)
tests_flow_t_strand_CPPFLAGS = $(HG_RIG_CPPFLAGS)
tests_flow_t_strand_LDADD = $(HG_BACK_TEST_LIBS)
# Requests that take long
if HAVE_CMOCKA
UNIT_TESTS += tests/flow/t_slow
endif
LATE = tests/flow/late.h $(CROWD)
tests_flow_t_slow_SOURCES = tests/flow/t_slow.c $(LATE)
tests_flow_t_slow_CPPFLAGS = $(HG_RIG_CPPFLAGS)
tests_flow_t_slow_LDADD = $(HG_BACK_TEST_LIBS)
# What passed a bind throttle
if HAVE_CMOCKA
UNIT_TESTS += tests/flow/t_quarantine
endif
tests_flow_t_quarantine_SOURCES = tests/flow/t_quarantine.c $(CROWD)
tests_flow_t_quarantine_CPPFLAGS = $(HG_RIG_CPPFLAGS)
tests_flow_t_quarantine_LDADD = $(HG_BACK_TEST_LIBS)
# Tickets and evicted keys on the way of a request
if HAVE_CMOCKA
UNIT_TESTS += tests/flow/t_gate tests/flow/t_gate_overload tests/flow/t_evict tests/flow/t_bind \
	tests/flow/t_gate_table tests/flow/t_gate_threads tests/flow/t_gate_random \
	tests/flow/t_evict_house
endif
GATESCENE = tests/flow/gatescene.h
tests_flow_t_gate_SOURCES = tests/flow/t_gate.c $(GATESCENE)
tests_flow_t_gate_CPPFLAGS = $(HG_STAGE_CPPFLAGS)
tests_flow_t_gate_LDADD = $(HG_STAGE_LIBS)
tests_flow_t_gate_overload_SOURCES = tests/flow/t_gate_overload.c $(GATESCENE)
tests_flow_t_gate_overload_CPPFLAGS = $(HG_STAGE_CPPFLAGS)
tests_flow_t_gate_overload_LDADD = $(HG_STAGE_LIBS)
EVICTSCENE = tests/flow/evictscene.h $(GATESCENE)
tests_flow_t_evict_SOURCES = tests/flow/t_evict.c $(EVICTSCENE)
tests_flow_t_evict_CPPFLAGS = $(HG_STAGE_CPPFLAGS)
tests_flow_t_evict_LDADD = $(HG_STAGE_LIBS)
tests_flow_t_bind_SOURCES = tests/flow/t_bind.c $(EVICTSCENE)
tests_flow_t_bind_CPPFLAGS = $(HG_STAGE_CPPFLAGS)
tests_flow_t_bind_LDADD = $(HG_STAGE_LIBS)
tests_flow_t_gate_table_SOURCES = tests/flow/t_gate_table.c $(EVICTSCENE) $(TABLESCENE)
tests_flow_t_gate_table_CPPFLAGS = $(HG_TABLE_TEST_CPPFLAGS)
tests_flow_t_gate_table_LDADD = $(HG_ROW_LIBS)
tests_flow_t_gate_threads_SOURCES = tests/flow/t_gate_threads.c $(GATESCENE)
tests_flow_t_gate_threads_CPPFLAGS = $(HG_STAGE_CPPFLAGS)
tests_flow_t_gate_threads_LDADD = $(HG_STAGE_LIBS)
tests_flow_t_gate_random_SOURCES = tests/flow/t_gate_random.c $(EVICTSCENE)
tests_flow_t_gate_random_CPPFLAGS = $(HG_STAGE_CPPFLAGS)
tests_flow_t_gate_random_LDADD = $(HG_STAGE_LIBS)
tests_flow_t_evict_house_SOURCES = tests/flow/t_evict_house.c $(EVICTSCENE)
tests_flow_t_evict_house_CPPFLAGS = $(HG_STAGE_CPPFLAGS)
tests_flow_t_evict_house_LDADD = $(HG_HOT_FLOW_LIBS)

UNIT_TESTS += tests/flow/t_generation
tests_flow_t_generation_SOURCES = tests/flow/t_generation.c
tests_flow_t_generation_CPPFLAGS = $(HG_STAGE_CPPFLAGS)
tests_flow_t_generation_LDADD = $(HG_STAGE_LIBS)
# Connections of a server that is going
if HAVE_CMOCKA
UNIT_TESTS += tests/flow/t_leave
endif
tests_flow_t_leave_SOURCES = tests/flow/t_leave.c
tests_flow_t_leave_CPPFLAGS = $(HG_STAGE_CPPFLAGS)
tests_flow_t_leave_LDADD = $(HG_STAGE_LIBS)
# Links over TLS
if HAVE_CMOCKA
UNIT_TESTS += tests/flow/t_link_tls tests/flow/t_link_tls_trust tests/flow/t_tls_real
endif
WIRE = tests/flow/wire.c tests/flow/wire.h tests/unit/tlshelp.h $(PAIR)
tests_flow_t_link_tls_SOURCES = tests/flow/t_link_tls.c $(WIRE)
tests_flow_t_link_tls_CPPFLAGS = $(HG_RIG_CPPFLAGS) $(SSL_CFLAGS) -I$(top_srcdir)/tests/unit
tests_flow_t_link_tls_LDADD = $(HG_BACK_TEST_LIBS)
tests_flow_t_link_tls_trust_SOURCES = tests/flow/t_link_tls_trust.c $(WIRE)
tests_flow_t_link_tls_trust_CPPFLAGS = $(tests_flow_t_link_tls_CPPFLAGS)
tests_flow_t_link_tls_trust_LDADD = $(HG_BACK_TEST_LIBS)
tests_flow_t_tls_real_SOURCES = tests/flow/t_tls_real.c tests/unit/tlshelp.h tests/flow/pair.c tests/flow/pair.h $(DAEMON)
tests_flow_t_tls_real_CPPFLAGS = $(HG_RIG_CPPFLAGS) $(SSL_CFLAGS) -I$(top_srcdir)/tests/unit
tests_flow_t_tls_real_LDADD = $(HG_BACK_TEST_LIBS)
