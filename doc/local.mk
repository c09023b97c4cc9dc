# doc
dist_doc_DATA += doc/configuration.md

dist_man_MANS += doc/headgate-load.1
dist_doc_DATA += doc/performance.md
dist_man_MANS += doc/headgatectl.1
