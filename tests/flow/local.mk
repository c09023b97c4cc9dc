# tests/flow
