# tests/tools: checks of the source itself
SCRIPT_TESTS += tests/tools/layers.sh tests/tools/pure.sh
EXTRA_DIST += tests/tools/check-all tests/tools/tsan.supp tests/tools/layers.sh tests/tools/pure.sh
