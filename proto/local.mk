# proto: the messages of TableAPI and HBase, from which the compiler makes C
noinst_LIBRARIES += libtablepb.a
nodist_libtablepb_a_SOURCES = proto/table.pb-c.c proto/table.pb-c.h
libtablepb_a_CFLAGS = -std=gnu11 -pthread $(HG_SAN) $(PROTOBUF_C_CFLAGS)
BUILT_SOURCES += proto/table.pb-c.h
CLEANFILES += proto/table.pb-c.c proto/table.pb-c.h
EXTRA_DIST += proto/table.proto

proto/table.pb-c.c proto/table.pb-c.h: proto/table.pb.stamp
proto/table.pb.stamp: proto/table.proto
	$(AM_V_GEN)$(MKDIR_P) proto && \
	$(PROTOC_C) --c_out=proto --proto_path=$(top_srcdir)/proto $(top_srcdir)/proto/table.proto && \
	touch $@
CLEANFILES += proto/table.pb.stamp
