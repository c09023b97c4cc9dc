noinst_LIBRARIES += libio.a
libio_a_SOURCES = src/io/loop.c src/io/loop.h src/io/mailbox.c src/io/mailbox.h src/io/out.c \
	src/io/out.h src/io/sock.c src/io/sock.h src/io/tls.c src/io/tls.h src/io/tls_ctx.c \
	src/io/tls_own.h
