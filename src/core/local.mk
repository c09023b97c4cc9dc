noinst_LIBRARIES += libcore.a
libcore_a_SOURCES = src/core/units.h src/core/gauge.h src/core/creditstate.h \
	src/core/creditstate.c src/core/credit.h src/core/credit.c src/core/credittick.h \
	src/core/credittick.c src/core/held.h src/core/held.c src/core/fairpool.h \
	src/core/fairpool.c src/core/readcost.h src/core/backoff.h src/core/backoff.c \
	src/core/retry.h src/core/breaker.h src/core/breaker.c src/core/loginguard.h \
	src/core/loginguard.c src/core/hotkey.h src/core/hotkey.c src/core/hotmerge.h \
	src/core/hotmerge.c src/core/keythrottle.c src/core/keylist.c \
	src/core/keythrottle.h src/core/keylist.h src/core/leaseplan.c src/core/leaseplan.h \
	src/core/balance.h src/core/balance_types.h \
	src/core/keythrottle.h src/core/keylist.h src/core/balance.h src/core/balance_types.h \
	src/core/balance_in.h src/core/balance.c src/core/balance_quota.c src/core/balance_plan.c \
	src/core/balance_tick.c src/core/ticket.c src/core/ticket.h src/core/ticketline.c \
	src/core/ticketline.h \
	src/core/leaseplan.c src/core/leaseplan.h
libcore_a_SOURCES += src/core/probe.h src/core/probe_in.h src/core/probe.c \
	src/core/probe_sample.c src/core/probe_adaptive.c
