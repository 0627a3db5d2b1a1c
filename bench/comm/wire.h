/* `evenload comm`: what the wire takes. Each operation of a communicator is timed at each size, out of place and in
 * place, its data are checked, and the figures are given in nccl-tests' words (docs/comm.md).
 *
 *     el_wire_plan_make(&options, n_ranks, &plan);           what is measured: operations, algorithms, sizes
 *     el_wire_measure(&plan, &job, quiet, &document);        by all ranks; rank 0 gets the document
 *     el_wire_print(document, stdout);  el_wire_csv(document, file);  el_figure_wire
 *
 * All but el_wire_measure are pure functions of plans and documents. Units: seconds and bytes inside; the document has
 * microseconds and GB/s (1e9 bytes), as nccl-tests prints them.
 *
 * The document, DIR/comm.json: {"schema", "kind": "comm", "command", "environment", "backend", "devices": [name],
 * "ranks" (of a group), "processes",
 * "group" (as given, or null), "groups", "members": [a rank of the job: {"host", "pid", "group"}], "minbytes",
 * "maxbytes", "stepbytes" (0: none), "stepfactor", "datatype", "redop", "root", "average", "iters", "warmup", "check",
 * "agg_iters", "cycles", "blocking", "overlap", "time_sliced" (a rank communicates on the core that computes),
 * "shared_cores", "others_waited_pct", "copy": [{"bytes", "time_us",
 * "gb_per_s", "samples_us", "cold": {"time_us", "gb_per_s", "samples_us"} or null}], "curves": [curve]}. A curve is an
 * operation by an algorithm: {"operation", "algorithm", "datatype", "redop", "root", "cycle" (from 0), "status":
 * "ok|absent", "reason", "wrong" (p2p: of all pairs), "points": [{"bytes", "count", "algorithm", "out_of_place": place,
 * "in_place": place, "cold": place}], "fit":
 * {"out_of_place": {"latency_us", "gb_per_s"}, "in_place": ..., "cold": ...}, "reached": {"bytes", "busbw_gb_per_s",
 * "copy_gb_per_s", "share", "normal": bool|null, "why"}}. A place is
 * {"time_us" (the median), "mean_us", "min_us", "p50_us", "p99_us", "algbw_gb_per_s", "busbw_gb_per_s", "wrong": count
 * or null, "samples_us": [a rank: [a call]], "overlap"}; null where the operation has none in place, and `cold` where
 * the size is less than EL_WIRE_COLD_BYTES. "overlap" is {"compute_us", "overall_us", "overlap_pct",
 * "compute_samples_us", "overall_samples_us": [a rank: [a call]]}, whose pure communication time is "time_us"; null
 * without --overlap on, and in `cold`.
 */
#pragma once

#include "bench/job/worker.h"
#include "bench/plot/data_file.h"
#include "bench/trial/costs.h"

enum { EL_WIRE_SIZES_MAX = 256, EL_WIRE_OPERATIONS = 11, EL_WIRE_CURVES_MAX = 1024, EL_WIRE_ITERS_MAX = 10000 };

/* Out of place, in place: the order of nccl-tests' columns. Both repeat one call on the same memory. Cold: in place,
 * but each call on memory that was last touched before as much other memory as the largest cache holds: so it is in a
 * training step. Smaller sizes are mostly latency, and not measured so. */
enum { EL_WIRE_APART, EL_WIRE_IN_PLACE, EL_WIRE_COLD, EL_WIRE_PLACES, EL_WIRE_WARM_PLACES = EL_WIRE_COLD };
enum { EL_WIRE_COLD_BYTES = 64 * 1024 };
/* With --overlap on a row of samples has more series behind its places: of each warm one the computation alone, and the
 * operation beside it. */
enum {
    EL_WIRE_COMPUTE = EL_WIRE_PLACES,
    EL_WIRE_OVERALL = EL_WIRE_COMPUTE + EL_WIRE_WARM_PLACES,
    EL_WIRE_SERIES = EL_WIRE_OVERALL + EL_WIRE_WARM_PLACES
};
extern const char *const el_wire_places[EL_WIRE_PLACES];

/* nccl-tests' name of an operation. EL_COMM_SEND stands for sendrecv: to the next rank, from the one before. */
struct el_wire_operation {
    const char *name;
    enum el_comm_verb verb;
    bool uneven; /* alltoallv: parts by nccl-tests' distances, sent as messages */
};
extern const struct el_wire_operation el_wire_operations[EL_WIRE_OPERATIONS];

struct el_wire_curve {
    const struct el_wire_operation *operation;
    enum el_comm_algorithm algorithm;
    enum el_dtype dtype;
    enum el_comm_reduction reduction;
    int root, cycle;
};

struct el_wire_plan {
    const struct el_wire_options *options;
    int n;                                /* ranks that communicate: of a group, all groups have as many */
    int n_groups, colors[EL_MEMBERS_MAX]; /* of a rank of the job, -1: in no group; 0 groups: not split */
    uint64_t sizes[EL_WIRE_SIZES_MAX];
    int n_sizes;
    struct el_wire_curve curves[EL_WIRE_CURVES_MAX];
    int n_curves;
    enum el_dtype copied; /* of memory copies: any size is a whole number of it */
    bool pairs; /* p2p: each two ranks instead, with the first and the last size; its curve is of no operation */
};

/* `operation`: a name, "all", or "" for all_reduce. Errors: EL_ERR_INVALID naming the word or option to change. */
enum el_status el_wire_plan_make(const char *operation, const struct el_wire_options *options, int n,
                                 struct el_wire_plan *plan_p);

/* Of a user's own command line: nccl-tests' -g and -t into --devices and --comm, where they were given; `rank`: of a
 * launcher's job, whose ranks have one device each. Errors: EL_ERR_INVALID, also of flags that exclude one another. */
enum el_status el_wire_take_flags(struct el_options *options, bool rank);

/* The group of rank `rank` by --group's text, "0,1" or "mod 2": as NCCL_TESTS_SPLIT has them; -1: in none. Errors:
 * EL_ERR_INVALID. */
enum el_status el_wire_color(const char *text, int rank, int *color_p);

/* One curve of each operation, by the communicator's own choice. */
void el_wire_plan_auto(struct el_wire_plan *plan);

/* In nccl-tests' words: "float", "prod". */
const char *el_wire_dtype(enum el_dtype dtype);
const char *el_wire_redop(enum el_comm_reduction reduction);

/* An all-to-all has no place to work in, and not every size is measured cold. */
bool el_wire_has_place(enum el_comm_verb verb, int place, uint64_t bytes);
/* Of memory that is worked on in place, and of a result: of the largest size, or of all that cold calls go through. */
size_t el_wire_memory_bytes(const struct el_wire_plan *plan);
/* Rows of samples: of sizes, or of pairs. */
int el_wire_rows(const struct el_wire_plan *plan);
/* Series of samples in a row: EL_WIRE_PLACES, with --overlap on EL_WIRE_SERIES. */
int el_wire_series(const struct el_wire_plan *plan);
/* Elements of a part where all data are about `bytes`: of operations with a part a rank bytes / n, down to whole 16
 * bytes, as nccl-tests cuts them. May be 0: such a size is left out. */
size_t el_wire_count(enum el_comm_verb verb, uint64_t bytes, size_t element_bytes, int n);
/* nccl-tests' size: of the larger one of data and result. */
uint64_t el_wire_bytes(enum el_comm_verb verb, size_t count, size_t element_bytes, int n);
/* The same of a curve's size number `s`, and the count; false: the curve has no such size. A barrier has one, of 0. */
bool el_wire_size(const struct el_wire_plan *plan, const struct el_wire_curve *curve, int s, size_t *count_p,
                  uint64_t *bytes_p);
/* busbw / algbw: what has to cross the bottleneck, as a share of the size (doc/PERFORMANCE.md of nccl-tests). */
double el_wire_bus_factor(enum el_comm_verb verb, int n);

/* Data whose result is known exactly, in every type and order of sums (data.c). */
struct el_wire_data {
    enum el_comm_verb verb;
    enum el_comm_reduction reduction;
    enum el_dtype dtype;
    int n, root;
    size_t count; /* of a part */
    bool uneven;
};
/* alltoallv, [n] ranks that give `count` elements n times together: what `from` sends to `to`; where that begins among
 * the parts of `from`, and among those that `to` gets. Elements. */
size_t el_wire_part(const struct el_wire_data *data, int from, int to);
size_t el_wire_part_sent_at(const struct el_wire_data *data, int from, int to);
size_t el_wire_part_got_at(const struct el_wire_data *data, int from, int to);
/* What rank `rank` gives, `count` elements of it; or zeros. Errors: the device's. */
enum el_status el_wire_fill(const struct el_wire_data *data, int rank, size_t count, struct el_view view, bool zeros);
/* How many elements of the member's result are wrong. */
enum el_status el_wire_check(const struct el_wire_data *data, int rank, struct el_view result, int64_t *wrong_p);

/* One member: its memory, and what it measured of one curve. */
struct el_wire_member {
    const struct el_wire_plan *plan;
    struct el_comm *comm;
    struct el_buffer *data, *result, *meeting; /* [largest size], [el_wire_memory_bytes], [an element] */
    struct el_buffer *in_place;                /* [el_wire_memory_bytes] of the communicator's own memory */
    const struct el_wire_curve *curve;         /* NULL: plain copies within the device's memory */
    struct el_buffer *work[3];                 /* of the computation (overlap.c); NULL without --overlap on */
    double *samples_s;                         /* [el_wire_rows][el_wire_series][iters] */
    int pair;                                  /* p2p: its number, while it is timed */
    int64_t deadline_ns; /* when a call that still waits for another rank fails, naming it; 0: never */
    int64_t wrong[EL_WIRE_SIZES_MAX][EL_WIRE_WARM_PLACES];
    enum el_comm_algorithm used[EL_WIRE_SIZES_MAX];
    struct el_error error;
};
/* Collective; blocking: all sizes of the member's curve, a barrier before each call (timing.c). Errors: EL_ERR_ABSENT
 * on all members alike where the communicator has no such operation or algorithm; EL_ERR_PEER. */
enum el_status el_wire_time(struct el_wire_member *member);
enum el_status el_wire_member_open(const struct el_wire_plan *plan, struct el_comm *comm,
                                   struct el_wire_member *member_p);
void el_wire_member_close(struct el_wire_member *member);

/* A computation on the member's compute stream: matrix products of so many rows each. 0 kernels: none. */
struct el_wire_work {
    int kernels;
    int64_t rows;
};
/* Takes and fills its memory. Errors: the device's. */
enum el_status el_wire_work_open(struct el_wire_member *member);
void el_wire_work_close(struct el_wire_member *member);
/* Of about `rows` rows in all, at least one. */
struct el_wire_work el_wire_work_of(double rows);
/* Queues it; the ops at which it begins and ends. Errors: the program's. */
enum el_status el_wire_work_issue(const struct el_wire_member *member, struct el_program *program,
                                  const struct el_wire_work *work, int *begin_p, int *end_p);
/* How much of the communication the computation hides, as the OSU micro-benchmarks define it (print_stats_nbc in their
 * osu_util_mpi.c): 100 (1 - (overall - compute) / pure), from 0 to 100. OSU limits it to 0 alone, because its compute
 * is a part of its overall. Units: of the three the same. NAN where `pure` is not positive or a time is missing. */
double el_wire_overlap_pct(double pure, double compute, double overall);
/* Of a curve that has it; else nothing. */
void el_wire_print_overlap(const json_t *curve, FILE *out);
void el_wire_say_overlap(const json_t *document, FILE *out);
/* A time in seven columns whatever its size. */
void el_wire_put_us(double us, FILE *out);

/* By all ranks of the job. Rank 0 gets the document, others NULL. `say`: progress on standard error. */
enum el_status el_wire_measure(const struct el_wire_plan *plan, const struct el_job *job, bool say,
                               json_t **document_p);

/* A curve from the parts of all ranks in order, [member: {"samples_us": [size][place][call], "wrong": [size][place]}];
 * `copy`: the document's (NULL: none yet). New reference (record.c). */
json_t *el_wire_curve_json(const struct el_wire_plan *plan, const struct el_wire_curve *curve, const json_t *members);
json_t *el_wire_copy_json(const struct el_wire_plan *plan, const json_t *members);
/* Whether two devices compute on one core, or have less than a core each. parts: [a rank: {"boot": the kernel's
 * boot_id, "quota": cores that its cgroup grants, 0: no quota, "cores": [a device]}]. */
bool el_wire_share_cores(const json_t *parts);
/* Adds "reached" to the document's curves, by its "copy" and "backend". */
void el_wire_judge(json_t *document);
/* Adds fits and "reached" to a document that has points alone (bench/foreign). */
void el_wire_complete(json_t *document);
/* Of a folder, a file, or a list by comma: a record of ours, or what other tools wrote. New reference. Errors: those of
 * el_foreign_read. */
enum el_status el_wire_from(const char *list, json_t **document_p);
/* Of "A,B", two records of ours, what both measured, size by size: {"kind": "comm difference", "a": {"name", "backend",
 * "ranks", ...}, "b", "rows": [{"operation", "algorithm", "place", "bytes", "a_us", "b_us", "ratio", "ratio_ci95",
 * "reason"}]}. New reference; NULL: A is no record of ours. Errors: el_wire_read's, of B. */
enum el_status el_wire_two(const char *list, json_t **document_p);
void el_wire_print_two(const json_t *document, FILE *out);
/* busbw of a point in place, or out of place where it has none: what is judged and drawn. */
double el_wire_best_place(const json_t *point);
/* Elements that were wrong, of all curves. */
int64_t el_wire_wrong(const json_t *document);

/* Errors: EL_ERR_IO; EL_ERR_INVALID: no document of ours, or of another schema. */
enum el_status el_wire_read(const char *path, json_t **document_p);

/* Of `comm p2p` (pairs.c): how many pairs; elements of its smaller (0) and larger (1) message; the other rank of
 * member->pair, or -1: this rank is in none. */
int el_wire_pairs(int n);
size_t el_wire_pair_count(const struct el_wire_plan *plan, int place);
int el_wire_partner(const struct el_wire_member *member);
/* [{"a", "b", "latency_us", "gb_per_s", "there_and_back_us": [[a call] small, [a call] large]}]. New reference. */
json_t *el_wire_pairs_json(const struct el_wire_plan *plan, const json_t *members);
void el_wire_print_pairs(const json_t *document, FILE *out);

void el_wire_print(const json_t *document, FILE *out);
/* Of a document, for el_write_file. */
enum el_status el_wire_csv(const void *document, FILE *out);
extern const struct el_figure el_figure_wire, el_figure_pairs;
