// fuzz - what every fuzz target has: one function that takes an input
// SPDX-License-Identifier: BSD-3-Clause
#ifndef HG_TESTS_FUZZ_FUZZ_H
#define HG_TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
