/* Other tools' measurements of collectives as the document of `evenload comm` (bench/comm/wire.h): nccl-tests' output
 * (text of any version with a line of columns, or -J's JSON) and NCCL Inspector's lines.
 *
 *     el_foreign_read(paths, &document);         one measurement: files of several operations, or of several ranks
 *     el_foreign_parse(text, name, &document);   a text in memory
 *
 * The document adds "left_out": [file], "cut", "lost_rows", "lost_calls", "average"
 * (null, or {"stated_busbw_gb_per_s", "busbw_gb_per_s": of the rows}), "source": "nccl-tests" | "NCCL Inspector",
 * "device_names", "hosts" (how many); it has no fits. Bandwidths come from times. Inspector's times are those of
 * kernels, which wait for the last rank: if all ranks of a call are there, its time is the last rank's (the transfer),
 * and "late" has the others' waits: {"calls", "ranks":
 * [{"rank", "last_pct", "caused_us", "waited_us"}], "sentence"} (means per call; caused: by calls to which it came
 * last). null: nothing was matched.
 *
 * Errors: EL_ERR_IO; EL_ERR_ABSENT: unknown form, naming those tried; EL_ERR_INVALID: incomplete. Threads: any. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "runtime/base/status.h"

/* Of files in a folder; ends with NULL. */
extern const char *const el_foreign_endings[];
/* `named`: the user named each path; of a folder, files of unknown form are left out. */
enum el_status el_foreign_read(const json_t *paths, bool named, json_t **document_p);
enum el_status el_foreign_parse(const char *text, const char *name, json_t **document_p);

/* ---- shared by the readers ---- */

enum { EL_FOREIGN_WORD = 32, EL_FOREIGN_POINTS_MAX = 4096, EL_FOREIGN_CURVES_MAX = 256 };

/* A measured row. `samples`, of one rank or of all: [rank: [us of a call]]; stolen. */
struct el_foreign_row {
    char operation[EL_FOREIGN_WORD], algorithm[EL_FOREIGN_WORD], type[EL_FOREIGN_WORD], redop[EL_FOREIGN_WORD];
    char used[EL_FOREIGN_WORD]; /* the algorithm that a library chose at this size; "": unknown */
    int root;
    double bytes, count, wrong; /* NAN: not checked */
    double bus_ratio;           /* busbw / algbw as printed, for unknown operations */
    bool in_place;
    json_t *samples;
};
struct el_foreign {
    const char *source;
    json_t *curves, *devices, *names, *hosts, *late; /* names: distinct kinds of devices; hosts: {name: true} */
    json_t *left_out;                                /* files of unknown form beside others */
    int ranks;                                       /* 0: not known yet */
    int64_t lost_rows;                               /* that the header of a file says and the file has not */
    bool cut;                                        /* a row is not whole, or the end is missing */
    int64_t lost_calls;                              /* calls that not all ranks have */
    double stated_busbw;                             /* the average that a file states of itself, GB/s */
    int n_stated;
};
/* Errors: EL_ERR_INVALID: too many. */
enum el_status el_foreign_add(struct el_foreign *foreign, struct el_foreign_row *row);
/* The operation within a program's or file's name: "all_reduce" of ./all_reduce_perf_mpi or nccl_allreduce.log; "":
 * none. */
const char *el_foreign_operation(const char *name);
/* busbw / algbw, NAN: unknown; and whether bytes are n times a part's. */
double el_foreign_bus_factor(const char *operation, int n);
bool el_foreign_has_parts(const char *operation);

/* Adds the rows of `text`. EL_ERR_ABSENT without a message: another form. */
enum el_status el_foreign_nccl_text(const char *text, const char *name, struct el_foreign *foreign);
enum el_status el_foreign_nccl_json(const json_t *document, const char *name, struct el_foreign *foreign);
/* Lines are kept until all files are read. */
struct el_inspector;
enum el_status el_inspector_add(const char *text, struct el_inspector **inspector_p);
enum el_status el_inspector_end(struct el_inspector *inspector, struct el_foreign *foreign);
void el_inspector_free(struct el_inspector *inspector);
