# doc
dist_doc_DATA += doc/configuration.md
