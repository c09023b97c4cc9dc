# tests/sim

# The credits
if HAVE_CMOCKA
UNIT_TESTS += tests/sim/t_heldsim tests/sim/t_fairsim tests/sim/t_creditsim
endif
tests_sim_t_heldsim_SOURCES = tests/sim/t_heldsim.c tests/sim/creditsim.c tests/sim/creditsim.h
tests_sim_t_heldsim_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_sim_t_heldsim_LDADD = libcore.a libbase.a $(CMOCKA_LIBS)
tests_sim_t_fairsim_SOURCES = tests/sim/t_fairsim.c tests/sim/creditsim.c tests/sim/creditsim.h
tests_sim_t_fairsim_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_sim_t_fairsim_LDADD = libcore.a libbase.a $(CMOCKA_LIBS)
tests_sim_t_creditsim_SOURCES = tests/sim/t_creditsim.c tests/sim/creditsim.c tests/sim/creditsim.h
tests_sim_t_creditsim_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_sim_t_creditsim_LDADD = libcore.a libbase.a $(CMOCKA_LIBS)

# Hot keys
if HAVE_CMOCKA
UNIT_TESTS += tests/sim/t_hotkeyzipf tests/sim/t_hotsim tests/sim/t_hotsimlife
endif
tests_sim_t_hotkeyzipf_SOURCES = tests/sim/t_hotkeyzipf.c tests/unit/hothelp.h
tests_sim_t_hotkeyzipf_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_sim_t_hotkeyzipf_LDADD = libcore.a libbase.a $(CMOCKA_LIBS) -lm
tests_sim_t_hotsim_SOURCES = tests/sim/t_hotsim.c tests/sim/hotsim.c tests/sim/hotsim.h \
	tests/unit/hothelp.h
tests_sim_t_hotsim_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_sim_t_hotsim_LDADD = libcore.a libbase.a $(CMOCKA_LIBS) -lm
tests_sim_t_hotsimlife_SOURCES = tests/sim/t_hotsimlife.c tests/sim/hotsim.c tests/sim/hotsim.h \
	tests/unit/hothelp.h
tests_sim_t_hotsimlife_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_sim_t_hotsimlife_LDADD = libcore.a libbase.a $(CMOCKA_LIBS) -lm

# The pool's planner
if HAVE_CMOCKA
UNIT_TESTS += tests/sim/t_poolsim tests/sim/t_poolsimload tests/sim/t_poolsimfault \
	tests/sim/t_poolsimrules
endif
POOLSIM_FILES = tests/sim/poolsim.c tests/sim/poolsim.h tests/sim/poolsim_in.h \
	tests/sim/poolsim_run.c tests/sim/poolsim_run.h tests/sim/poolsim_load.c \
	tests/sim/poolsim_load.h tests/sim/poolsim_score.c tests/sim/poolsim_naive.c \
	tests/sim/poolsim_rust.c tests/sim/poolsim_python.c \
	tests/sim/poolsim_balance.c tests/sim/poolsim_balance.h
tests_sim_t_poolsim_SOURCES = tests/sim/t_poolsim.c $(POOLSIM_FILES)
tests_sim_t_poolsim_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_sim_t_poolsim_LDADD = libcore.a libbase.a $(CMOCKA_LIBS) -lm
tests_sim_t_poolsimload_SOURCES = tests/sim/t_poolsimload.c $(POOLSIM_FILES)
tests_sim_t_poolsimload_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_sim_t_poolsimload_LDADD = libcore.a libbase.a $(CMOCKA_LIBS) -lm
tests_sim_t_poolsimfault_SOURCES = tests/sim/t_poolsimfault.c $(POOLSIM_FILES)
tests_sim_t_poolsimfault_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_sim_t_poolsimfault_LDADD = libcore.a libbase.a $(CMOCKA_LIBS) -lm
tests_sim_t_poolsimrules_SOURCES = tests/sim/t_poolsimrules.c $(POOLSIM_FILES)
tests_sim_t_poolsimrules_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_sim_t_poolsimrules_LDADD = libcore.a libbase.a $(CMOCKA_LIBS) -lm

# Bind eviction and throttle
if HAVE_CMOCKA
UNIT_TESTS += tests/sim/t_bindsim tests/sim/t_bindhera
endif
BINDSIM_FILES = tests/sim/bindsim.c tests/sim/bindsim.h tests/unit/bindhelp.h
tests_sim_t_bindsim_SOURCES = tests/sim/t_bindsim.c $(BINDSIM_FILES)
tests_sim_t_bindsim_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_sim_t_bindsim_LDADD = libcore.a libbase.a $(CMOCKA_LIBS) -lm
tests_sim_t_bindhera_SOURCES = tests/sim/t_bindhera.c $(BINDSIM_FILES)
tests_sim_t_bindhera_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_sim_t_bindhera_LDADD = libcore.a libbase.a $(CMOCKA_LIBS) -lm
# Overload
if HAVE_CMOCKA
UNIT_TESTS += tests/sim/t_overload tests/sim/t_overloadstep tests/sim/t_overloadfair \
	tests/sim/t_overloadrules
endif
OVERLOAD_FILES = tests/sim/overload.c tests/sim/overload.h tests/sim/overload_in.h \
	tests/sim/overload_back.c tests/sim/overload_control.c tests/sim/overload_score.c \
	tests/sim/overload_score.h tests/sim/overload_case.c tests/sim/overload_case.h
tests_sim_t_overload_SOURCES = tests/sim/t_overload.c $(OVERLOAD_FILES)
tests_sim_t_overload_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_sim_t_overload_LDADD = libcore.a libbase.a $(CMOCKA_LIBS) -lm
tests_sim_t_overloadstep_SOURCES = tests/sim/t_overloadstep.c $(OVERLOAD_FILES)
tests_sim_t_overloadstep_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_sim_t_overloadstep_LDADD = libcore.a libbase.a $(CMOCKA_LIBS) -lm
tests_sim_t_overloadfair_SOURCES = tests/sim/t_overloadfair.c $(OVERLOAD_FILES)
tests_sim_t_overloadfair_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_sim_t_overloadfair_LDADD = libcore.a libbase.a $(CMOCKA_LIBS) -lm
tests_sim_t_overloadrules_SOURCES = tests/sim/t_overloadrules.c $(OVERLOAD_FILES)
tests_sim_t_overloadrules_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_sim_t_overloadrules_LDADD = libcore.a libbase.a $(CMOCKA_LIBS) -lm

# Probing of execution tickets
if HAVE_CMOCKA
UNIT_TESTS += tests/sim/t_probesim
endif
tests_sim_t_probesim_SOURCES = tests/sim/t_probesim.c
tests_sim_t_probesim_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_sim_t_probesim_LDADD = libcore.a libbase.a $(CMOCKA_LIBS) -lm
EXTRA_DIST += tests/sim/simseeds.h
