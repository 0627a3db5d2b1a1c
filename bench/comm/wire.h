/* `evenload comm`: times each operation of a communicator at each size, out of place and in place, checks its data, and
 * reports in nccl-tests' terms (docs/comm.md).
 *
 *     el_wire_plan_make(&options, n_ranks, &plan);           operations, algorithms, sizes
 *     el_wire_measure(&plan, &job, quiet, &document);        on all ranks; rank 0 gets the document
 *     el_wire_print(document, stdout);  el_wire_csv(document, file);  el_figure_wire
 *
 * Units: seconds and bytes; the document has microseconds and GB/s (1e9 bytes), like nccl-tests.
 *
 * DIR/comm.json: {"schema", "kind": "comm", "command", "environment", "backend", "devices": [name], "ranks" (of a
 * group), "processes", "group" (as given, or null), "groups", "members": [a rank of the job: {"host", "pid", "group"}],
 * "minbytes", "maxbytes", "stepbytes" (0: none), "stepfactor", "datatype", "redop", "root", "average", "iters",
 * "warmup", "check", "agg_iters", "cycles", "blocking", "overlap", "time_sliced" (a rank communicates on the core that
 * computes), "shared_cores", "others_waited_pct", "copy": [{"bytes", "time_us", "gb_per_s", "samples_us", "cold":
 * {"time_us", "gb_per_s", "samples_us"} or null}], "curves": [curve]}.
 *
 * A curve: {"operation", "algorithm", "datatype", "redop", "root", "cycle" (from 0), "status": "ok|absent", "reason",
 * "points": [{"bytes", "count", "algorithm", "out_of_place": place, "in_place": place,
 * "cold": place}], "fit": {"out_of_place": {"latency_us", "gb_per_s"}, "in_place": ..., "cold": ...}, "reached":
 * {"bytes", "busbw_gb_per_s", "copy_gb_per_s", "share", "normal": bool|null, "why"}}.
 *
 * A place: {"time_us" (the median), "mean_us", "min_us", "p50_us", "p99_us", "algbw_gb_per_s", "busbw_gb_per_s",
 * "wrong": count or null, "samples_us": [a rank: [a call]], "overlap"}; null where the operation has none in place, and
 * `cold` below EL_WIRE_COLD_BYTES. "overlap": {"compute_us", "overall_us", "overlap_pct", "compute_samples_us",
 * "overall_samples_us": [a rank: [a call]]}; its pure communication time is "time_us". It is null without --overlap on,
 * and in `cold`. */
#pragma once

#include "bench/job/worker.h"
#include "bench/plot/data_file.h"
#include "bench/trial/costs.h"

enum { EL_WIRE_SIZES_MAX = 256, EL_WIRE_OPERATIONS = 11, EL_WIRE_CURVES_MAX = 1024, EL_WIRE_ITERS_MAX = 10000 };

/* Out of place and in place repeat one call on the same memory, as in nccl-tests. Cold: in place, with as much other
 * memory as the largest cache holds between two uses, as in a training step; small sizes are mostly latency and not
 * measured cold. */
enum { EL_WIRE_APART, EL_WIRE_IN_PLACE, EL_WIRE_COLD, EL_WIRE_PLACES, EL_WIRE_WARM_PLACES = EL_WIRE_COLD };
enum { EL_WIRE_COLD_BYTES = 64 * 1024 };
/* --overlap on adds two series to each warm place: the computation alone, and the operation beside it. */
enum {
    EL_WIRE_COMPUTE = EL_WIRE_PLACES,
    EL_WIRE_OVERALL = EL_WIRE_COMPUTE + EL_WIRE_WARM_PLACES,
    EL_WIRE_SERIES = EL_WIRE_OVERALL + EL_WIRE_WARM_PLACES
};
extern const char *const el_wire_places[EL_WIRE_PLACES];

/* `name`: nccl-tests' name. EL_COMM_SEND stands for sendrecv: to the next rank, from the previous one. */
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
    int n;                                /* ranks that communicate; the same in every group */
    int n_groups, colors[EL_MEMBERS_MAX]; /* by rank of the job; -1: in no group; 0 groups: not split */
    uint64_t sizes[EL_WIRE_SIZES_MAX];
    int n_sizes;
    struct el_wire_curve curves[EL_WIRE_CURVES_MAX];
    int n_curves;
    enum el_dtype copied; /* type of memory copies: divides any size */
};

/* `operation`: a name, "all", or "" for all_reduce. Errors: EL_ERR_INVALID naming the word or option to change. */
enum el_status el_wire_plan_make(const char *operation, const struct el_wire_options *options, int n,
                                 struct el_wire_plan *plan_p);

/* Translates nccl-tests' -g and -t to --devices and --comm. `rank`: of a launcher's job, with one device. Errors:
 * EL_ERR_INVALID, also for flags that exclude one another. */
enum el_status el_wire_take_flags(struct el_options *options, bool rank);

/* The group of `rank` by --group's text, "0,1" or "mod 2", as in NCCL_TESTS_SPLIT; -1: none. Errors: EL_ERR_INVALID. */
enum el_status el_wire_color(const char *text, int rank, int *color_p);

void el_wire_plan_auto(struct el_wire_plan *plan);

/* nccl-tests' names: "float", "prod". */
const char *el_wire_dtype(enum el_dtype dtype);
const char *el_wire_redop(enum el_comm_reduction reduction);

/* An all-to-all has no place to work in, and small sizes are not measured cold. */
bool el_wire_has_place(enum el_comm_verb verb, int place, uint64_t bytes);
/* Memory for work in place and for a result: the largest size, or all that cold calls go through. */
size_t el_wire_memory_bytes(const struct el_wire_plan *plan);
int el_wire_series(const struct el_wire_plan *plan);
/* Elements of a part if all data are about `bytes`; per-rank parts: bytes / n in whole 16 bytes, as in nccl-tests. 0:
 * leave the size out. */
size_t el_wire_count(enum el_comm_verb verb, uint64_t bytes, size_t element_bytes, int n);
/* nccl-tests' size: the larger of data and result. */
uint64_t el_wire_bytes(enum el_comm_verb verb, size_t count, size_t element_bytes, int n);
/* Count and bytes of size `s`; false: the curve has no such size. A barrier has one size, 0. */
bool el_wire_size(const struct el_wire_plan *plan, const struct el_wire_curve *curve, int s, size_t *count_p,
                  uint64_t *bytes_p);
/* busbw / algbw: the share of the size that crosses the bottleneck (nccl-tests, doc/PERFORMANCE.md). */
double el_wire_bus_factor(enum el_comm_verb verb, int n);

/* Data with an exactly known result in every type and order of sums (data.c). */
struct el_wire_data {
    enum el_comm_verb verb;
    enum el_comm_reduction reduction;
    enum el_dtype dtype;
    int n, root;
    size_t count; /* of a part */
    bool uneven;
};
/* alltoallv, in elements: the part that `from` sends to `to`, its offset in `from`'s data, and its offset in `to`'s
 * result. */
size_t el_wire_part(const struct el_wire_data *data, int from, int to);
size_t el_wire_part_sent_at(const struct el_wire_data *data, int from, int to);
size_t el_wire_part_got_at(const struct el_wire_data *data, int from, int to);
/* Fills with `count` elements of `rank`'s data, or with zeros. Errors: the device's. */
enum el_status el_wire_fill(const struct el_wire_data *data, int rank, size_t count, struct el_view view, bool zeros);
/* Counts wrong elements. */
enum el_status el_wire_check(const struct el_wire_data *data, int rank, struct el_view result, int64_t *wrong_p);

struct el_wire_member {
    const struct el_wire_plan *plan;
    struct el_comm *comm;
    struct el_buffer *data, *result, *meeting; /* [largest size], [el_wire_memory_bytes], [an element] */
    struct el_buffer *in_place;                /* [el_wire_memory_bytes] of the communicator's own memory */
    const struct el_wire_curve *curve;         /* NULL: plain copies within the device's memory */
    struct el_buffer *work[3];                 /* the computation's (overlap.c); NULL without --overlap on */
    double *samples_s;                         /* [sizes][el_wire_series][iters] */
    int64_t deadline_ns; /* when a call that waits for another rank fails, naming that rank; 0: never */
    int64_t wrong[EL_WIRE_SIZES_MAX][EL_WIRE_WARM_PLACES];
    enum el_comm_algorithm used[EL_WIRE_SIZES_MAX];
    struct el_error error;
};
/* Collective, blocking: all sizes of a curve, a barrier before each call. Errors: EL_ERR_ABSENT on all members alike:
 * no such operation or algorithm; EL_ERR_PEER. */
enum el_status el_wire_time(struct el_wire_member *member);
enum el_status el_wire_member_open(const struct el_wire_plan *plan, struct el_comm *comm,
                                   struct el_wire_member *member_p);
void el_wire_member_close(struct el_wire_member *member);

/* A computation on the member's compute stream: `kernels` matrix products of `rows` rows each. 0 kernels: none. */
struct el_wire_work {
    int kernels;
    int64_t rows;
};
/* Errors: the device's. */
enum el_status el_wire_work_open(struct el_wire_member *member);
void el_wire_work_close(struct el_wire_member *member);
/* About `rows` rows in all, at least one. */
struct el_wire_work el_wire_work_of(double rows);
/* Gives its first and last op. Errors: the program's. */
enum el_status el_wire_work_issue(const struct el_wire_member *member, struct el_program *program,
                                  const struct el_wire_work *work, int *begin_p, int *end_p);
/* Share of the communication that the computation hides: 100 (1 - (overall - compute) / pure) within 0 to 100, after
 * print_stats_nbc in OSU's osu_util_mpi.c (OSU limits only to 0, because its compute is a part of its overall). NAN if
 * `pure` is not positive or a time is missing. */
double el_wire_overlap_pct(double pure, double compute, double overall);
void el_wire_print_overlap(const json_t *curve, FILE *out);
void el_wire_say_overlap(const json_t *document, FILE *out);
/* A time in seven columns, whatever its size. */
void el_wire_put_us(double us, FILE *out);

/* Collective. Rank 0 gets the document, others NULL. `say`: progress on standard error. */
enum el_status el_wire_measure(const struct el_wire_plan *plan, const struct el_job *job, bool say,
                               json_t **document_p);

/* `members` in rank order: [{"samples_us": [size][place][call], "wrong": [size][place]}]. New reference. */
json_t *el_wire_curve_json(const struct el_wire_plan *plan, const struct el_wire_curve *curve, const json_t *members);
json_t *el_wire_copy_json(const struct el_wire_plan *plan, const json_t *members);
/* Whether two devices compute on one core, or have less than a core each. parts: [a rank: {"boot": boot_id, "quota":
 * cores granted by its cgroup, 0: no quota, "cores": [a device]}]. */
bool el_wire_share_cores(const json_t *parts);
/* Adds "reached" to each curve. */
void el_wire_judge(json_t *document);
/* Adds fits and "reached" to a document of points (bench/foreign). */
void el_wire_complete(json_t *document);
/* `list`: a folder, a file, or a comma-separated list, of our records or other tools' output. New reference. Errors:
 * those of el_foreign_read. */
enum el_status el_wire_from(const char *list, json_t **document_p);
/* Compares two of our records, "A,B", by common sizes: {"kind": "comm difference", "a": {"name", "backend", "ranks",
 * ...}, "b", "rows": [{"operation", "algorithm", "place", "bytes", "a_us", "b_us", "ratio", "ratio_ci95", "reason"}]}.
 * New reference; NULL: A is not our record. Errors: el_wire_read's, for B. */
enum el_status el_wire_two(const char *list, json_t **document_p);
void el_wire_print_two(const json_t *document, FILE *out);
/* busbw in place, or out of place if the operation has none in place. */
double el_wire_best_place(const json_t *point);
int64_t el_wire_wrong(const json_t *document);

/* A comm.json. Errors: EL_ERR_IO; EL_ERR_INVALID: not our document or schema. */
bool el_wire_is(const json_t *document);
enum el_status el_wire_read(const char *path, json_t **document_p);

void el_wire_print(const json_t *document, FILE *out);
enum el_status el_wire_csv(const void *document, FILE *out);
extern const struct el_figure el_figure_wire;
