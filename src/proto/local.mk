noinst_LIBRARIES += libproto.a
libproto_a_SOURCES = \
	src/proto/opcode.def src/proto/opcode.h src/proto/opcode.c \
	src/proto/status.def src/proto/status.h src/proto/status.c \
	src/proto/frame.h src/proto/frame.c \
	src/proto/frameinfo.h \
	src/proto/hello.h \
	src/proto/reply.h \
	src/proto/jsontext.h \
	src/proto/mcreq.h \
	src/proto/errmap.h
