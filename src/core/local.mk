noinst_LIBRARIES += libcore.a
libcore_a_SOURCES = src/core/units.h src/core/gauge.h src/core/creditstate.h src/core/credit.h \
	src/core/credittick.h src/core/held.h src/core/fairpool.h src/core/readcost.h \
	src/core/backoff.h src/core/retry.h src/core/breaker.h src/core/loginguard.h
