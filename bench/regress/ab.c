/* The session of two programs: who goes first is drawn for each block, so that whatever the machine does, it does to
 * either side alike. What a launch prints becomes samples; what is missing, new or in another unit becomes a fault. */
#include "bench/regress/ab.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/regress/readings.h"
#include "bench/regress/rule.h"
#include "bench/regress/shell.h"
#include "bench/stats/signed_rank.h"
#include "runtime/base/clock.h"
#include "runtime/base/rng.h"
#include "runtime/base/utf8.h"

static const int ANALYSES[] = {14, 24, 40};
enum { N_ANALYSES = sizeof ANALYSES / sizeof ANALYSES[0], BASE = 0, HEAD = 1, CELLS_MAX = 1000 };

/* Whether the unit says that a cell has no noise: kept beside the set, by the cell's place. */
enum hint { NOISY, BY_UNIT, BY_NAME };

struct session {
    const struct el_regress_ask *ask;
    struct el_regress_set *set;
    enum hint *hints;
    int64_t begin_ns;
    double longest_s; /* block */
    bool cancelled;
};

/* How a side and a block are called in messages: where only one program is launched, "program" and "launch". */
static const char *side_text(const struct session *s, int side)
{
    return !s->ask->base ? "program" : side == BASE ? "base" : "head";
}

static const char *block_text(const struct session *s)
{
    return s->ask->base ? "block" : "launch";
}

/* "a" and "a cpu:0" are in "a,b". */
static bool listed(const char *list, const char *name)
{
    for (const char *at = list; *at; at += strcspn(at, ","), at += *at == ',') {
        size_t n = strcspn(at, ",");
        if (n > 0 && !strncmp(at, name, n) && (name[n] == 0 || name[n] == ' ')) return true;
    }
    return false;
}

__attribute__((format(printf, 2, 3))) static void fault(struct el_regress_cell *cell, const char *format, ...)
{
    va_list arguments;
    if (cell->fault != EL_CELL_FAULTLESS) return; /* the first one is the reason */
    cell->fault = EL_CELL_FAULT_UNREADABLE;
    va_start(arguments, format);
    vsnprintf(cell->reason, sizeof cell->reason, format, arguments);
    va_end(arguments);
}

static struct el_regress_cell *find(const struct el_regress_set *set, const char *name)
{
    for (size_t i = 0; i < set->n; i++)
        if (!strcmp(set->cells[i].name, name)) return &set->cells[i];
    return NULL;
}

static enum el_status add_cell(struct session *s, const struct el_reading *reading, int block,
                               struct el_regress_cell **cell_p)
{
    enum hint *hints = realloc(s->hints, (s->set->n + 1) * sizeof *hints);
    if (hints) s->hints = hints;
    if (s->set->n >= CELLS_MAX)
        return el_fail(EL_ERR_INVALID, "more than %d metrics are printed: choose some by --metric", CELLS_MAX);
    struct el_regress_cell *cell = hints ? el_regress_add(s->set, reading->name) : NULL;
    if (cell == NULL) return el_fail(EL_ERR_HOST_MEMORY, "no memory for a cell");
    bool named = listed(s->ask->exact, reading->name);
    hints[s->set->n - 1] = named ? BY_NAME : reading->exact ? BY_UNIT : NOISY;
    cell->kind = EL_CELL_PAIRED;
    cell->better = listed(s->ask->higher, reading->name) ? EL_BETTER_HIGHER : reading->better;
    snprintf(cell->unit, sizeof cell->unit, "%s", reading->unit);
    if (block > 1) fault(cell, "was printed for the first time in %s %d", block_text(s), block);
    *cell_p = cell;
    return EL_OK;
}

static enum el_status take_reading(struct session *s, const struct el_reading *reading, int side, int block)
{
    if (*s->ask->metrics ? !listed(s->ask->metrics, reading->name) : reading->extra) return EL_OK;
    struct el_regress_cell *cell = find(s->set, reading->name);
    if (cell == NULL) EL_TRY(add_cell(s, reading, block, &cell));
    if (strcmp(cell->unit, reading->unit) != 0)
        fault(cell, "its unit is '%s', but '%s' in the %s of %s %d", cell->unit, reading->unit, side_text(s, side),
              block_text(s), block);
    if (strcmp(reading->unit, reading->other_unit) != 0)
        fault(cell, "the %s prints it in '%s' and in '%s' in one launch, of %s %d", side_text(s, side), reading->unit,
              reading->other_unit, block_text(s), block);
    if (side == BASE) return el_regress_cell_append(&cell->base, &cell->n_base, reading->value);
    return el_regress_cell_append(&cell->head, &cell->n_head, reading->value);
}

/* Names the side and the block in front of what is wrong. */
static enum el_status blame(const struct session *s, enum el_status status, const char *option, int side, int block)
{
    char text[EL_ERROR_TEXT_BYTES];
    snprintf(text, sizeof text, "%s", el_error_message());
    return el_fail(status, "%s%s, %s %d: %s", option, side_text(s, side), block_text(s), block, text);
}

/* Before a launch, and in no figure of it. */
static enum el_status prepare(struct session *s, int side, int block)
{
    const struct el_shell_spec spec = {
        .command = s->ask->prepare, .timeout_s = s->ask->timeout_s, .go_on = s->ask->go_on};
    struct el_shell_output output;
    if (!spec.command || !*spec.command) return EL_OK;
    enum el_status status = el_shell_run(&spec, &output);
    if (status != EL_OK) return blame(s, status, "--prepare for the ", side, block);
    s->cancelled = output.cancelled;
    free(output.text);
    return EL_OK;
}

static enum el_status launch(struct session *s, int side, int block, struct el_readings *readings)
{
    const struct el_shell_spec spec = {
        .command = side == BASE ? s->ask->base : s->ask->head, .timeout_s = s->ask->timeout_s, .go_on = s->ask->go_on};
    struct el_shell_output output;
    EL_TRY(prepare(s, side, block));
    if (s->cancelled) return EL_OK;
    enum el_status status = el_shell_run(&spec, &output);
    if (status != EL_OK) return blame(s, status, "", side, block);
    s->cancelled = output.cancelled;
    if (!s->cancelled) status = el_readings_parse(output.text, readings);
    free(output.text);
    return status == EL_OK ? EL_OK : blame(s, status, "", side, block);
}

/* What is missing in a block; and what was asked for by name, and nobody prints. */
static void find_missing(struct session *s, int block)
{
    for (size_t i = 0; i < s->set->n; i++) {
        struct el_regress_cell *cell = &s->set->cells[i];
        for (int side = s->ask->base ? BASE : HEAD; side <= HEAD; side++)
            if ((side == BASE ? cell->n_base : cell->n_head) < (size_t)block)
                fault(cell, "the %s did not print it in %s %d", side_text(s, side), block_text(s), block);
    }
}

static enum el_status find_unprinted(const struct session *s, const char *option, const char *names)
{
    char list[1024], *rest = NULL;
    snprintf(list, sizeof list, "%s", names);
    for (char *name = strtok_r(list, ",", &rest); name; name = strtok_r(NULL, ",", &rest)) {
        bool found = false;
        for (size_t i = 0; i < s->set->n; i++) found = found || listed(name, s->set->cells[i].name);
        if (!found)
            return el_fail(EL_ERR_INVALID, "--%s: %s prints '%s'%s", option,
                           s->ask->base ? "neither program" : "no launch", name,
                           names != s->ask->metrics && *s->ask->metrics ? ", or --metric leaves it out" : "");
    }
    return EL_OK;
}

static enum el_status find_all_unprinted(const struct session *s)
{
    EL_TRY(find_unprinted(s, "metric", s->ask->metrics));
    EL_TRY(find_unprinted(s, "exact", s->ask->exact));
    return find_unprinted(s, "higher", s->ask->higher);
}

int el_regress_first_side(uint64_t seed, int block)
{
    const struct el_rng_key key = {.seed = seed, .use = EL_RNG_ORDER, .id = 0xAB};
    return (int)(el_rng_u64(&key, (uint64_t)block, 0) >> 63);
}

static enum el_status run_block(struct session *s, int block)
{
    struct el_readings readings[2] = {{0}, {0}};
    int first = s->ask->base ? el_regress_first_side(s->ask->seed, block) : HEAD;
    int64_t begin_ns = el_clock_ns();
    enum el_status status = launch(s, first, block, &readings[first]);
    if (status == EL_OK && !s->cancelled && s->ask->base) status = launch(s, 1 - first, block, &readings[1 - first]);
    for (int side = BASE; side <= HEAD && !s->cancelled; side++)
        for (size_t i = 0; i < readings[side].n && status == EL_OK; i++)
            status = take_reading(s, &readings[side].rows[i], side, block);
    for (int side = BASE; side <= HEAD; side++) el_readings_free(&readings[side]);
    if (status != EL_OK || s->cancelled) return status;
    s->longest_s = fmax(s->longest_s, (double)(el_clock_ns() - begin_ns) / 1e9);
    s->set->blocks = block;
    find_missing(s, block);
    return block == 1 ? find_all_unprinted(s) : EL_OK;
}

/* What a unit says to be without noise is compared exactly only while it has shown none. */
static void find_kinds(struct session *s)
{
    for (size_t i = 0; i < s->set->n && s->hints != NULL; i++) { /* there is one a cell */
        struct el_regress_cell *cell = &s->set->cells[i];
        bool still = el_regress_constant(cell->base, cell->n_base) && el_regress_constant(cell->head, cell->n_head);
        bool exact = s->hints[i] == BY_NAME || (s->hints[i] == BY_UNIT && still);
        cell->kind = exact ? EL_CELL_EXACT : EL_CELL_PAIRED;
    }
}

static void judge(struct session *s, bool last)
{
    find_kinds(s);
    s->set->last_analysis = last;
    el_regress_judge(s->set);
}

/* Whether more samples would not change the gate's answer. */
static bool stands(const struct el_regress_set *set)
{
    enum el_regress_exit outcome = el_regress_outcome(set);
    return outcome != EL_REGRESS_INCONCLUSIVE;
}

/* The block after which the stage's analysis comes, and whether it is the last one. */
static int analysis_at(const struct el_regress_ask *ask, int stage, bool *last_p)
{
    int most = ask->max_blocks > 0 ? ask->max_blocks : ANALYSES[N_ANALYSES - 1];
    if (ask->blocks > 0) most = ask->blocks;
    int at = stage < N_ANALYSES && ask->blocks == 0 ? ANALYSES[stage] : most;
    *last_p = at >= most || stage >= N_ANALYSES - 1;
    return *last_p ? most : at;
}

static double elapsed_s(const struct session *s)
{
    return (double)(el_clock_ns() - s->begin_ns) / 1e9;
}

static bool time_is_up(const struct session *s)
{
    return s->ask->budget_s >= 0 && s->set->blocks > 0 && elapsed_s(s) + s->longest_s > s->ask->budget_s;
}

static enum el_status measure(struct session *s)
{
    struct el_regress_set *set = s->set;
    for (bool last = false; !last && !s->cancelled;) {
        int next = analysis_at(s->ask, set->stage, &last);
        while (set->blocks < next && !s->cancelled) {
            if (time_is_up(s)) {
                last = true;
                break;
            }
            EL_TRY(run_block(s, set->blocks + 1));
            if (s->ask->tick) s->ask->tick(s->ask->context, set, next, elapsed_s(s));
            judge(s, false); /* what cannot be read is seen at once; all else waits for the analysis */
            if (el_regress_outcome(set) == EL_REGRESS_USE) return EL_OK;
        }
        judge(s, last || s->cancelled);
        if (stands(set)) return EL_OK;
        if (!last) set->stage++;
    }
    return EL_OK;
}

/* What makes a figure of a pair unreadable is an error here: nothing is judged that could say so. */
static enum el_status launch_all(struct session *s)
{
    struct el_regress_set *set = s->set;
    while (set->blocks < s->ask->blocks && !s->cancelled) {
        EL_TRY(run_block(s, set->blocks + 1));
        if (s->ask->tick) s->ask->tick(s->ask->context, set, s->ask->blocks, elapsed_s(s));
        for (size_t i = 0; i < set->n; i++)
            if (set->cells[i].fault != EL_CELL_FAULTLESS)
                return el_fail(EL_ERR_INVALID, "%s: %s", set->cells[i].name, set->cells[i].reason);
    }
    find_kinds(s);
    return EL_OK;
}

static enum el_status begin(const struct el_regress_ask *ask, struct el_regress_set *set,
                            enum el_status (*run)(struct session *))
{
    struct session session = {.ask = ask, .set = set, .begin_ns = el_clock_ns()};
    snprintf(set->base_name, sizeof set->base_name, "%s", ask->base ? ask->base : "");
    snprintf(set->head_name, sizeof set->head_name, "%s", ask->head);
    el_utf8_printable(set->base_name);
    el_utf8_printable(set->head_name);
    enum el_status status = run(&session);
    free(session.hints);
    return status;
}

enum el_status el_regress_ab(const struct el_regress_ask *ask, struct el_regress_set *set)
{
    return begin(ask, set, measure);
}

enum el_status el_regress_launches(const struct el_regress_ask *ask, struct el_regress_set *set)
{
    return begin(ask, set, launch_all);
}
