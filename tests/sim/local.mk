# tests/sim: algorithms in virtual time
# A program NAME is one row here and the file NAME.c; Makefile.am says what all are linked with.
if HAVE_CMOCKA
UNIT_TESTS += tests/sim/t_bindhera
UNIT_TESTS += tests/sim/t_bindsim
UNIT_TESTS += tests/sim/t_creditsim
UNIT_TESTS += tests/sim/t_fairsim
UNIT_TESTS += tests/sim/t_heldsim
UNIT_TESTS += tests/sim/t_hotkeyzipf
UNIT_TESTS += tests/sim/t_hotsim
UNIT_TESTS += tests/sim/t_hotsimlife
UNIT_TESTS += tests/sim/t_linesim
UNIT_TESTS += tests/sim/t_overload
UNIT_TESTS += tests/sim/t_overloadfair
UNIT_TESTS += tests/sim/t_overloadrules
UNIT_TESTS += tests/sim/t_overloadstep
UNIT_TESTS += tests/sim/t_poolsim
UNIT_TESTS += tests/sim/t_poolsimfault
UNIT_TESTS += tests/sim/t_poolsimload
UNIT_TESTS += tests/sim/t_poolsimrules
UNIT_TESTS += tests/sim/t_probesim
endif

# What the programs share
tests_libscene_a_SOURCES += tests/sim/bindsim.c
tests_libscene_a_SOURCES += tests/sim/bindsim.h
tests_libscene_a_SOURCES += tests/sim/creditsim.c
tests_libscene_a_SOURCES += tests/sim/creditsim.h
tests_libscene_a_SOURCES += tests/sim/hotsim.c
tests_libscene_a_SOURCES += tests/sim/hotsim.h
tests_libscene_a_SOURCES += tests/sim/linesim.c
tests_libscene_a_SOURCES += tests/sim/linesim.h
tests_libscene_a_SOURCES += tests/sim/linesim_in.h
tests_libscene_a_SOURCES += tests/sim/linesim_store.c
tests_libscene_a_SOURCES += tests/sim/linesim_workers.c
tests_libscene_a_SOURCES += tests/sim/overload.c
tests_libscene_a_SOURCES += tests/sim/overload.h
tests_libscene_a_SOURCES += tests/sim/overload_back.c
tests_libscene_a_SOURCES += tests/sim/overload_case.c
tests_libscene_a_SOURCES += tests/sim/overload_case.h
tests_libscene_a_SOURCES += tests/sim/overload_control.c
tests_libscene_a_SOURCES += tests/sim/overload_in.h
tests_libscene_a_SOURCES += tests/sim/overload_score.c
tests_libscene_a_SOURCES += tests/sim/overload_score.h
tests_libscene_a_SOURCES += tests/sim/poolsim.c
tests_libscene_a_SOURCES += tests/sim/poolsim.h
tests_libscene_a_SOURCES += tests/sim/poolsim_balance.c
tests_libscene_a_SOURCES += tests/sim/poolsim_balance.h
tests_libscene_a_SOURCES += tests/sim/poolsim_in.h
tests_libscene_a_SOURCES += tests/sim/poolsim_load.c
tests_libscene_a_SOURCES += tests/sim/poolsim_load.h
tests_libscene_a_SOURCES += tests/sim/poolsim_naive.c
tests_libscene_a_SOURCES += tests/sim/poolsim_python.c
tests_libscene_a_SOURCES += tests/sim/poolsim_run.c
tests_libscene_a_SOURCES += tests/sim/poolsim_run.h
tests_libscene_a_SOURCES += tests/sim/poolsim_rust.c
tests_libscene_a_SOURCES += tests/sim/poolsim_score.c
tests_libscene_a_SOURCES += tests/sim/simseeds.h
