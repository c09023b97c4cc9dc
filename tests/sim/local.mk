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
