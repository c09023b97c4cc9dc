bin_PROGRAMS += headgatectl
headgatectl_SOURCES = src/ctl/backup.c src/ctl/change.c src/ctl/param.c src/ctl/param.h src/ctl/unset.c src/ctl/client.c src/ctl/client.h src/ctl/command.c \
	src/ctl/command.h src/ctl/ctl.c src/ctl/ctl.h src/ctl/hbasebatch.c src/ctl/hbasescan.c \
	src/ctl/hbaseverb.c src/ctl/hotkeys.c src/ctl/login.c src/ctl/main.c src/ctl/manage.c \
	src/ctl/option.c src/ctl/option.def src/ctl/option.h \
	src/ctl/passwd.c src/ctl/prompt.c src/ctl/rowcall.c src/ctl/rowcall.h src/ctl/rowfilter.c \
	src/ctl/rowfilter.h src/ctl/rowlines.c src/ctl/rowlines.h src/ctl/rowpages.c \
	src/ctl/rowpages.h src/ctl/rowshow.c src/ctl/rowshow.h src/ctl/rowtext.c src/ctl/rowtext.h \
	src/ctl/show.c src/ctl/showtickets.c src/ctl/showtickets.h src/ctl/table.c src/ctl/table.h \
	src/ctl/tablebatch.c src/ctl/tablequery.c src/ctl/tableverb.c src/ctl/tableverb.h \
	src/ctl/verb.def
headgatectl_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS) $(GSASL_CFLAGS) $(CRYPTO_CFLAGS) $(PROTOBUF_C_CFLAGS)
# of the server: the form of passwords and secrets, and addresses
headgatectl_SOURCES += src/app/password.c src/app/password.h src/app/secret.c src/app/secret.h \
	src/io/sock.c src/io/sock.h
headgatectl_LDADD = libproto.a libtablepb.a libbase.a $(PROTOBUF_C_LIBS) $(JANSSON_LIBS) $(GSASL_LIBS) $(CRYPTO_LIBS)
