noinst_LIBRARIES += libproto.a
libproto_a_SOURCES = src/proto/wire.h \
	src/proto/opcode.def src/proto/opcode.h src/proto/opcode.c \
	src/proto/status.def src/proto/status.h src/proto/status.c \
	src/proto/stranger.h src/proto/stranger.c \
	src/proto/frame.h src/proto/frame.c \
	src/proto/frameinfo.h src/proto/frameinfo.c \
	src/proto/hello.h src/proto/hello.c \
	src/proto/reply.h src/proto/reply.c \
	src/proto/jsontext.h src/proto/jsontext.c \
	src/proto/mcreq.h src/proto/mcreq.c \
	src/proto/errmap.h src/proto/errmap.c \
	src/proto/tablemsg.h src/proto/rowdoc.h
