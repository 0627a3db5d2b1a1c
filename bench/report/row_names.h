/* How tables and figures call a mode, a batch and a process. */
#ifndef EL_BENCH_ROW_NAMES_H
#define EL_BENCH_ROW_NAMES_H

#include <jansson.h>
#include <stddef.h>

#include "bench/base/table.h"

/* "ddp"; "ddp view" where gradients are views of the buckets; "ddp 25M" where all of those are closed at 25 MiB,
 * "ddp 1/5M" where the first one is at 1 MiB, nothing for PyTorch's 1 and 25; "dp -replicas" without that cause
 * (--dp-fix), "dp loss" with the loss in the replicas (--loss-in); "dp w2" with two loader workers a device, "dp cold"
 * with a cold page cache. */
void el_table_mode(const json_t *trial, char *text, size_t bytes);

/* A column's `show`: "256 (2 x 128)"; uneven shares "65 (33..32)". */
void el_table_batch(const json_t *trial, const json_t *context, char *text);

/* A process's command line as people know it: words without folders, a Python script that is a program of its own
 * (torchrun) without "python3", nothing that a terminal would obey. */
void el_table_command(const char *command, char *text, size_t bytes);

#endif
