/* Studies: a table that somebody published, taken apart by arithmetic and held against this runtime.
 *
 *     el_study_begin(&study);                         the published table, its lines, every candidate
 *     el_study_on(&study, options);                   optional: on the devices that were named
 *     el_study_fit(&study);                           length of the sentences; memory by forecast, nothing is run
 *     el_study_run(&study, options);                  optional: the same measured, through trials, runner and store
 *     el_study_judge(&study);                         what holds, and within what
 *     el_study_print(&study, stdout); el_study_json(&study);
 *
 * `two-cards` is the only one so far: DataParallel's TextCNN on two GPUs, memory as nvidia-smi shows it. What is
 * concluded, and how far it carries: docs/study-two-cards.md. Units: published figures are MiB, as published; ours
 * are bytes.
 */
#ifndef EL_BENCH_STUDY_H
#define EL_BENCH_STUDY_H

#include <stdio.h>

#include "bench/options/config.h"

enum { EL_STUDY_ROWS = 3, EL_STUDY_CARDS = 2, EL_STUDY_CANDIDATES = 12 };

/* What is asked of our differences, in per cent of the published ones. */
#define EL_STUDY_DIFFERENCE_PCT   3.0
#define EL_STUDY_GROWTH_PCT       10.0
/* Bare contexts with PyTorch's kernels in them, as reported: 200 to 700 (pytorch#28113), 871 (#49481) and about 1,005
 * MiB (#28394). They vary by card, driver and version, so that only a C that is not above 0 is impossible. */
#define EL_STUDY_CONTEXT_LOW_MIB  200.0
#define EL_STUDY_CONTEXT_HIGH_MIB 1005.0

enum el_study_card { EL_STUDY_MAIN, EL_STUDY_SECOND };

struct el_study_row {
    int64_t global_batch;
    double card_mib[EL_STUDY_CARDS];
};

/* y = at_zero + slope * x by least squares; `residual` is the largest distance of a point. */
struct el_study_line {
    double at_zero, slope, residual;
};

/* A configuration that might have made the table. P and C are what the table implies if it did. */
struct el_study_candidate {
    enum el_optimizer_kind optimizer;
    bool peer_copies; /* sums by copies between cards, each staying for a moment; else NCCL's reduce */
    bool kept;        /* gradients between steps */
    int copies;       /* k: copies of the parameters on the main card at the end of reduce */
    double params_mib, context_mib;
    double words; /* vocabulary that P means at the study's numbers a word; negative: none */
};

/* Memory of both cards by one way of counting, over the batches, and how it stands to what was published. */
struct el_study_account {
    int64_t words; /* of a sentence, fitted to the second card's growth */
    double card_bytes[EL_STUDY_ROWS][EL_STUDY_CARDS];
    double growth_mib[EL_STUDY_CARDS];          /* a local sample */
    double difference_error_pct[EL_STUDY_ROWS]; /* ours against published, main minus second */
    double growth_error_pct[EL_STUDY_CARDS];
    bool difference_holds[EL_STUDY_ROWS], growth_holds, holds;
};

/* What the driver says of a card when a run of the study has ended. */
struct el_study_held {
    double driver_bytes;  /* of this process, on the card; NAN: unknown */
    double outside_bytes; /* of it context and libraries, which are no tensors; NAN: the device is no GPU */
};

/* Where all published differences lie within EL_STUDY_DIFFERENCE_PCT of one (k - 2) P: lowest and highest. Empty where
 * the lowest is above the highest. */
struct el_study_band {
    double difference_mib[2], params_mib[2], words[2];
};

struct el_study {
    const struct el_study_row *rows; /* [EL_STUDY_ROWS] */
    struct el_study_line lines[EL_STUDY_CARDS];
    struct el_study_candidate candidates[EL_STUDY_CANDIDATES];
    int copies;                    /* k of the candidate that is run */
    struct el_study_band band;     /* for that k */
    struct el_train_config config; /* of the candidate that is run; the batch is a row's */
    struct el_device_name devices[EL_STUDY_CARDS];
    uint64_t param_bytes;
    struct el_memory_forecast memory[EL_STUDY_ROWS][EL_STUDY_CARDS]; /* at `reserved.words`, predicted or measured */
    /* Each tag's own highest, without the kernels' scratch: what an allocator that gives nothing back ends up with,
     * and so the counterpart of nvidia-smi. The one that is judged. */
    struct el_study_account reserved;
    struct el_study_account live;      /* the same ledgers' peaks: bytes alive at one moment */
    struct el_study_account live_best; /* the same, predicted, with sentences fitted to its own growth */
    double unattributed_mib[EL_STUDY_ROWS][EL_STUDY_CARDS]; /* published minus reserved */
    bool measured;
    struct el_study_held held[EL_STUDY_ROWS][EL_STUDY_CARDS];
    char dir[EL_PATH_BYTES]; /* of the run; "" for none */
};

/* Arithmetic, of any table (fit.c). */
struct el_study_line el_study_line(const double *x, const double *y, int n);
void el_study_lines(const struct el_study_row *rows, int n, struct el_study_line lines[EL_STUDY_CARDS]);
/* k of a configuration: parameters, replica 0's gradients and the sum, plus what is kept, the optimizer's slots, and
 * the copy that a reduce without NCCL makes. */
int el_study_copies(enum el_optimizer_kind optimizer, bool peer_copies, bool kept);
/* All of them. A vocabulary is (P - other_mib) over `word_mib`. */
void el_study_candidates(const struct el_study_line lines[EL_STUDY_CARDS], double other_mib, double word_mib,
                         struct el_study_candidate candidates[EL_STUDY_CANDIDATES]);
bool el_study_possible(const struct el_study_candidate *candidate);
/* "impossible", "C as reported", ... Static text. */
const char *el_study_credible(const struct el_study_candidate *candidate);
/* The band for k = `copies`; a vocabulary as above. */
struct el_study_band el_study_band(const struct el_study_row *rows, int copies, double other_mib, double word_mib);
/* Errors, growth and what holds, from `card_bytes`. */
void el_study_compare(const struct el_study_row *rows, const struct el_study_line lines[EL_STUDY_CARDS],
                      struct el_study_account *account);

enum el_status el_study_begin(struct el_study *study);
/* On options' devices, or on two of the CPU where none are named. Errors: EL_ERR_INVALID where there are not two,
 * EL_ERR_ABSENT where a run is asked for and they are not there. */
enum el_status el_study_on(struct el_study *study, const struct el_options *options);
/* "2 cpu devices", or "cuda:0 and cuda:1". */
const char *el_study_devices(const struct el_study *study, char *text, size_t bytes);
/* Whether the devices are GPUs, of which the driver tells. */
bool el_study_has_cards(const struct el_study *study);
enum el_status el_study_fit(struct el_study *study);
void el_study_judge(struct el_study *study);
/* Bytes of the host that a run needs, both devices and what surrounds them. */
double el_study_need_bytes(const struct el_study *study);
/* The options of `compare` that run the candidate, with `asked`'s folder and quiet. */
void el_study_options(const struct el_study *study, const struct el_options *asked, struct el_options *options_p);
/* Puts what was measured in the forecast's place; writes a run's folder. Interrupted (el_runner_interrupted) the
 * forecast stands. Errors: those of trials and launches; EL_ERR_INTERNAL where a trial did not end well. */
enum el_status el_study_run(struct el_study *study, const struct el_options *options);
/* The same from the run's document, {"trials": [one a batch]}. */
enum el_status el_study_read(const json_t *run, struct el_study *study);

void el_study_print(const struct el_study *study, FILE *out);
/* What the driver says of cards, by batch; nothing where they are none, or nothing was measured (cards.c). */
void el_study_print_held(const struct el_study *study, FILE *out);
json_t *el_study_held_json(const struct el_study *study); /* new reference: [batch][card], or null */
/* The last part of what is printed: live bytes, the reason, the band, what was fitted, the judgement (why.c). */
void el_study_explain(const struct el_study *study, FILE *out);
/* The tag that moves the live bytes' main minus second most from the smallest batch to the largest. */
enum el_tag el_study_moving_tag(const struct el_study *study);
json_t *el_study_json(const struct el_study *study); /* new reference */

#endif
