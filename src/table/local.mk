noinst_LIBRARIES += libtable.a
libtable_a_SOURCES = src/table/filter.h src/table/outcome.h src/table/tableop.h src/table/hbaseop.h \
	src/table/filter.c src/table/filter_in.h src/table/filter_row.c src/table/tableop.c

# HBase operations
libtable_a_SOURCES += src/table/hbaseop.c src/table/hbaseread.c src/table/hbasecells.c \
	src/table/hbasecells.h src/table/hbasetargets.c src/table/hbasetargets.h
