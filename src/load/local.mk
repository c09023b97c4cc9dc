bin_PROGRAMS += headgate-load
headgate_load_SOURCES = src/load/addr.c src/load/addr.h src/load/arrivals.c src/load/arrivals.h \
	src/load/binary.c src/load/check.c src/load/check.h src/load/codec.h src/load/conn.c \
	src/load/conn.h src/load/cpu.c src/load/cpu.h src/load/csv.c src/load/csv.h src/load/gen.c \
	src/load/gen.h src/load/json.c src/load/json.h src/load/lane.c src/load/lane.h src/load/lines.c \
	src/load/lines.h src/load/login.c src/load/login.h src/load/main.c src/load/op.def \
	src/load/op.h src/load/open.c src/load/open.h src/load/option.c src/load/option.def \
	src/load/option.h src/load/options.c src/load/options.h src/load/parse.c src/load/parse.h \
	src/load/rate.c src/load/rate.h src/load/report.c src/load/report.h src/load/resp.c \
	src/load/rowbody.c src/load/rowbody.h src/load/rows.c src/load/rows.h src/load/run.c \
	src/load/run.h src/load/series.c src/load/series.h src/load/stats.c src/load/stats.h \
	src/load/status.c src/load/status.def src/load/status.h src/load/text.c src/load/wire.h \
	src/load/worker.c src/load/worker.h
headgate_load_CFLAGS = $(AM_CFLAGS) $(GSASL_CFLAGS)
headgate_load_LDADD = libbase.a $(GSASL_LIBS) -lm
