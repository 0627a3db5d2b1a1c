/* What the fuzz targets share. A target is one parser: LLVMFuzzerTestOneInput gives it an input that may be anything,
 * and says what must hold then. It returns 0 and keeps nothing; what is wrong ends the process (a sanitizer, or
 * fuzz_expect).
 *
 *     clang: linked to libFuzzer, which looks for inputs that reach new code      make fuzz; scripts/attack
 *     gcc:   linked to driver.c, which changes the seeds at random                scripts/test fuzz
 *
 * Both have the same seeds (tests/fuzz/corpus/NAME) and change an input in the same ways (mutate.c). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "runtime/base/status.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
/* Changes data[0 .. size) in place, of which there are max_size bytes; returns the new size. The second is libFuzzer's
 * own or the driver's; the first changes values of JSON as values, some at once, and leaves all else to the second. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);

/* The input as a text that ends at its first zero byte. For free(). */
char *fuzz_text(const uint8_t *data, size_t size);
/* A file of that content in this process's own folder, which is in memory; folders on its way are made. Returns its
 * path, until the next call. */
const char *fuzz_file(const char *name, const void *data, size_t size);
const char *fuzz_folder(void);

/* Options name no file of the input's any more, but two sentences of our own: made data takes longer than all else. */
struct el_options;
void fuzz_own_data(struct el_options *options);

/* Ends the process with these words where it does not hold. */
void fuzz_expect(bool holds, const char *words);
/* A failure is one line that says what is wrong. Returns whether it is EL_OK. */
bool fuzz_status(enum el_status status);
/* Where a target prints what a person would read; the end of it looks for what must not reach a terminal: control
 * characters, and commands of CI systems. */
FILE *fuzz_print_begin(void);
void fuzz_print_end(FILE *out);
/* Where commands are what is printed. */
void fuzz_print_end_commands(FILE *out);
