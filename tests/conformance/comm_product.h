/* Everything that a communicator must do right: verb x type x reduction x length x place x algorithm x root, in place
 * and not, in memory of its own and in any, for all verbs that it has. Each value of each factor meets each of every
 * other; with EVENLOAD_LONG=1 the whole product follows. As one member of a group sees it: included by the tests that
 * start members, each in its own way.
 */
#pragma once

#include "tests/conformance/comm_bits.h"
#include "tests/conformance/comm_case.h"
#include "tests/conformance/comm_used.h"
#include "tests/conformance/pairwise.h"
#include "tests/sanitized.h"

enum { OF_VERB, OF_TYPE, OF_REDUCTION, OF_ALGORITHM, OF_LENGTH, OF_ROOT, IN_PLACE, REGISTERED, AT_ONCE, N_OF };

/* A part of `large` is more than one piece, segment or stage of each backend, all together. */
enum { PRODUCT_LARGE = 150001 };
static const struct {
    size_t count, shift;
} product_lengths[] = {{0, 0}, {1, 0}, {13, 0}, {1024, 0}, {1031, 1}, {4096, 3}, {PRODUCT_LARGE, 0}};
enum { N_PRODUCT_LENGTHS = sizeof product_lengths / sizeof product_lengths[0] };

/* How many members a group has that is tried whole. */
static const int product_sizes[] = {1, 2, 3, 4, 7};
enum { N_PRODUCT_SIZES = sizeof product_sizes / sizeof product_sizes[0], PRODUCT_SIZE_MAX = 7 };

/* Sanitizers leave the largest groups out, for the time they take. */
static inline int count_product_sizes(void)
{
    return !is_sanitized() ? N_PRODUCT_SIZES : getenv("EVENLOAD_LONG") ? N_PRODUCT_SIZES - 1 : N_PRODUCT_SIZES - 2;
}

static inline bool product_has(struct el_comm *comm, enum el_comm_verb verb)
{
    if (verb == EL_COMM_RECV) return false; /* with EL_COMM_SEND */
    if (verb == EL_COMM_SEND && !el_comm_has_verb(comm, EL_COMM_RECV)) return false;
    return verb != EL_COMM_BARRIER && el_comm_has_verb(comm, verb);
}

/* Rows that would be another row once more are left out: a reduction where nothing is reduced, a root where there is
 * none. */
static inline bool product_valid(const struct pairwise_row *row, const void *context)
{
    struct el_comm *comm = *(struct el_comm *const *)context;
    enum el_comm_verb verb = (enum el_comm_verb)row->level[OF_VERB];
    enum el_comm_algorithm algorithm = (enum el_comm_algorithm)row->level[OF_ALGORITHM];
    const struct el_comm_verb_row *is = el_comm_verb_row(verb);
    if (!product_has(comm, verb)) return false;
    if (row->level[OF_REDUCTION] > 0 && !is->reduces) return false;
    if (!el_comm_has_reduction(comm, (enum el_comm_reduction)row->level[OF_REDUCTION],
                               (enum el_dtype)row->level[OF_TYPE]))
        return false;
    if (row->level[OF_ROOT] > 0 && (!is->has_root || is->is_link)) return false;
    if (row->level[IN_PLACE] && (verb == EL_COMM_ALL_TO_ALL || is->is_link)) return false;
    if (row->level[AT_ONCE] && (is->is_link || el_device_is_asynchronous(el_comm_device(comm)))) return false;
    return algorithm == EL_COMM_AUTO ||
           (el_comm_has_algorithm(verb, algorithm) && el_comm_set_algorithm(comm, algorithm) == EL_OK);
}

static inline struct comm_case product_case(const struct pairwise_row *row, int size)
{
    struct comm_case c = {.verb = (enum el_comm_verb)row->level[OF_VERB],
                          .reduction = (enum el_comm_reduction)row->level[OF_REDUCTION],
                          .dtype = (enum el_dtype)row->level[OF_TYPE],
                          .algorithm = (enum el_comm_algorithm)row->level[OF_ALGORITHM],
                          .count = product_lengths[row->level[OF_LENGTH]].count,
                          .shift = product_lengths[row->level[OF_LENGTH]].shift,
                          .root = (int[]){0, size - 1, size / 2}[row->level[OF_ROOT]],
                          .in_place = row->level[IN_PLACE],
                          .registered = row->level[REGISTERED],
                          .at_once = row->level[AT_ONCE]};
    const struct el_comm_verb_row *is = el_comm_verb_row(c.verb);
    if (c.count == PRODUCT_LARGE && (is->all_data || is->all_result)) c.count /= (size_t)size;
    if (c.count >= 4096 && is_sanitized()) c.count /= 4;
    return c;
}

/* Where a communicator has links, and needs them opened. */
static inline enum el_status product_open_mailboxes(struct el_comm *comm)
{
    if (el_comm_has_verb(comm, EL_COMM_SEND)) return EL_OK;
    enum el_status status = el_comm_open_mailboxes(comm, NULL, PRODUCT_LARGE * sizeof(double));
    return status == EL_ERR_ABSENT ? EL_OK : status;
}

/* Collective. Leaves the algorithm to the communicator again. The whole product is one of memory of any kind, and of
 * programs. */
static inline enum el_status check_product_of(struct el_comm *comm, bool whole)
{
    struct pairwise product = {
        .n_factors = N_OF,
        .levels = {EL_COMM_VERB_COUNT, EL_DTYPE_COUNT, EL_COMM_REDUCTION_COUNT, EL_COMM_ALGORITHM_COUNT,
                   N_PRODUCT_LENGTHS, 3, 2, whole ? 1 : 2, whole ? 1 : 2},
        .valid = product_valid,
        .context = &comm,
        .whole = whole,
    };
    enum el_status status = product_open_mailboxes(comm);
    pairwise_fill(&product);
    for (int i = 0; i < product.n_rows && status == EL_OK; i++) {
        struct comm_case c = product_case(&product.rows[i], el_comm_size(comm));
        status = el_comm_set_algorithm(comm, c.algorithm);
        if (status == EL_OK) status = case_check(&c, comm);
    }
    free(product.rows);
    if (status == EL_OK) return el_comm_set_algorithm(comm, EL_COMM_AUTO);
    el_comm_abort(comm); /* the others would wait for this one */
    return status;
}

static inline enum el_status check_bits_of_all(struct el_comm *comm)
{
    enum el_status status = EL_OK;
    for (int algorithm = EL_COMM_ALGORITHM_COUNT - 1; algorithm >= EL_COMM_AUTO && status == EL_OK; algorithm--)
        if (el_comm_set_algorithm(comm, (enum el_comm_algorithm)algorithm) == EL_OK) status = check_bits(comm);
    if (status != EL_OK) el_comm_abort(comm);
    return status;
}

static inline enum el_status check_product(struct el_comm *comm)
{
    EL_TRY(check_product_of(comm, false));
    EL_TRY(check_bits_of_all(comm));
    EL_TRY(check_used(comm));
    return getenv("EVENLOAD_LONG") && !is_sanitized() ? check_product_of(comm, true) : EL_OK;
}

/* What a program that checks products and sequences says beforehand. */
static inline void product_announce(void)
{
    if (!getenv("EVENLOAD_LONG"))
        puts("# long: all of verb x type x reduction x length x algorithm x root x in place; 50 times as many "
             "sequences");
}
