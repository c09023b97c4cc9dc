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
	src/proto/keyslot.h src/proto/keyslot.c src/proto/redirect.h src/proto/redirect.c \
	src/proto/tablemsg.h src/proto/tablemsg.c src/proto/tablemsg_encode.c \
	src/proto/tablepb.h src/proto/tablepb.c \
	src/proto/tablepart.h src/proto/tablepart.c src/proto/tablepart_filter.c \
	src/proto/tablepart_cells.c src/proto/tablepart_table.c src/proto/tablepart_hbase.c \
	src/proto/rowwire.h src/proto/rowwire.c src/proto/rowdoc.h src/proto/rowdoc.c
# The generated header must be there first, also when one target alone is made from nothing.
$(libproto_a_OBJECTS): proto/table.pb-c.h
