/* What other tools measured of collectives, as the document of `evenload comm` (bench/comm/wire.h): nccl-tests' output
 * (text, of any version that has a line of columns, and the JSON of -J) and the lines of NCCL Inspector.
 *
 *     el_foreign_read(paths, &document);         of one measurement: files of several operations, or of several ranks
 *     el_foreign_parse(text, name, &document);   of a text in memory
 *
 * The document has also "source": "nccl-tests" | "NCCL Inspector", "device_names", "hosts" (how many); its fits are not
 * made. Bandwidths are computed from times. Inspector's times of ranks are those of kernels, which wait for the last
 * rank: where all ranks of a call are there, its time is that of the rank that came last (the transfer), and "late" has
 * what the others waited: {"calls", "ranks": [{"rank", "last_pct", "caused_us", "waited_us"}], "sentence"} (means a
 * call; caused: by those calls to which it came last). null: nothing was matched.
 *
 * Errors: EL_ERR_IO; EL_ERR_ABSENT: none of these forms, in one line that says which were tried; EL_ERR_INVALID: one of
 * them, but not complete. Threads: any. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "runtime/base/status.h"

/* Of files in a folder, ended by NULL. */
extern const char *const el_foreign_endings[];
enum el_status el_foreign_read(const json_t *paths, json_t **document_p);
enum el_status el_foreign_parse(const char *text, const char *name, json_t **document_p);

/* ---- between the readers ---- */

enum { EL_FOREIGN_WORD = 32, EL_FOREIGN_POINTS_MAX = 4096, EL_FOREIGN_CURVES_MAX = 256 };

/* A measured row. Its samples are of one rank, or of all: [rank: [us of a call]]; taken over. */
struct el_foreign_row {
    char operation[EL_FOREIGN_WORD], algorithm[EL_FOREIGN_WORD], type[EL_FOREIGN_WORD], redop[EL_FOREIGN_WORD];
    char used[EL_FOREIGN_WORD]; /* the algorithm at this size, where a library chose it; "": not known */
    int root;
    double bytes, count, wrong; /* NAN: not checked */
    double bus_ratio;           /* busbw / algbw as printed; for operations that we do not know */
    bool in_place;
    json_t *samples;
};
struct el_foreign {
    const char *source;
    json_t *curves, *devices, *names, *hosts, *late; /* names: kinds of devices, each once; hosts: {name: true} */
    int ranks;                                       /* 0: not known yet */
};
/* Errors: EL_ERR_INVALID: too many. */
enum el_status el_foreign_add(struct el_foreign *foreign, struct el_foreign_row *row);
/* The operation that a program's or a file's name has in it: "all_reduce" of ./all_reduce_perf_mpi; "": none. */
const char *el_foreign_operation(const char *name);
/* What times n are bytes of all, where the others count a part's; and busbw / algbw, NAN: not known. */
double el_foreign_bus_factor(const char *operation, int n);
bool el_foreign_has_parts(const char *operation);

/* Adds what `text` has. EL_ERR_ABSENT without a message: it is not of the form. */
enum el_status el_foreign_nccl_text(const char *text, const char *name, struct el_foreign *foreign);
enum el_status el_foreign_nccl_json(const json_t *document, const char *name, struct el_foreign *foreign);
/* Lines are kept until all files are read. */
struct el_inspector;
enum el_status el_inspector_add(const char *text, struct el_inspector **inspector_p);
enum el_status el_inspector_end(struct el_inspector *inspector, struct el_foreign *foreign);
void el_inspector_free(struct el_inspector *inspector);
