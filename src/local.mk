bin_PROGRAMS += headgate
headgate_SOURCES = src/headgate.c
