/* Who goes first is drawn for each block, so that whatever the machine does, it does to either side alike. What a
 * launch prints becomes samples; what is missing, new or in another unit becomes a fault. */
#include "bench/regress/launches.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/regress/rule.h"
#include "runtime/base/clock.h"
#include "runtime/base/rng.h"

static const int ANALYSES[] = {14, 24, 40};
enum { N_ANALYSES = sizeof ANALYSES / sizeof ANALYSES[0], BASE = 0, HEAD = 1, CELLS_MAX = 1000 };

struct session {
    struct el_regress_launching *launching;
    const struct el_regress_options *asked;
    bool ab;
    struct el_regress_set *set;
    const char *commands[2];
    const char *sides[2], *block; /* how they are called in messages */
    int64_t begin_ns;
    double longest_s; /* block */
    bool cancelled;
};

static double elapsed_s(const struct session *s)
{
    return (double)(el_clock_ns() - s->begin_ns) / 1e9;
}

/* ---- what a launch printed ---- */

/* Nothing says which way is better, and nobody asked for it by name: one of the many lines that programs print. */
static bool is_unjudged(const struct session *s, const struct el_reading *reading)
{
    const struct el_regress_options *r = s->asked;
    const char *const lists[] = {r->metrics, r->exact, r->higher, r->lower};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        if (el_regress_listed(lists[i], reading->name)) return false;
    return !reading->directed && !strcmp(reading->unit, reading->other_unit);
}

static enum el_status add_cell(struct session *s, const struct el_reading *reading, int block,
                               struct el_regress_cell **cell_p)
{
    bool higher = el_regress_listed(s->asked->higher, reading->name);
    bool lower = el_regress_listed(s->asked->lower, reading->name);
    if (s->set->n >= CELLS_MAX)
        return el_fail(EL_ERR_INVALID, "more than %d metrics are printed: choose some by --metric", CELLS_MAX);
    EL_TRY(el_regress_add(s->set, reading->name, cell_p));
    struct el_regress_cell *cell = *cell_p;
    cell->kind = EL_CELL_PAIRED;
    cell->claim = el_regress_listed(s->asked->exact, reading->name) ? EL_CELL_EXACT_BY_NAME
                  : reading->exact                                  ? EL_CELL_EXACT_BY_UNIT
                                                                    : EL_CELL_NOISY;
    cell->better = higher ? EL_BETTER_HIGHER : lower ? EL_BETTER_LOWER : reading->better;
    snprintf(cell->unit, sizeof cell->unit, "%s", reading->unit);
    if (!reading->directed && !higher && !lower)
        el_regress_fault(cell, EL_CELL_UNREADABLE, "%s%s%s which way is better: give --higher or --lower %.40s",
                         *cell->unit ? "its unit '" : "no unit says", cell->unit, *cell->unit ? "' does not say" : "",
                         cell->name);
    if (block > 1)
        el_regress_fault(cell, EL_CELL_UNREADABLE, "was printed for the first time in %s %d", s->block, block);
    return EL_OK;
}

static enum el_status leave_out(struct el_regress_set *set, const char *name)
{
    if (!set->unjudged) set->unjudged = json_array();
    if (json_array_size(set->unjudged) < CELLS_MAX && !el_json_has(set->unjudged, name))
        json_array_append_new(set->unjudged, json_string(name));
    return set->unjudged ? EL_OK : el_fail(EL_ERR_HOST_MEMORY, "no memory for what a program printed");
}

/* Of what was printed several times. */
static double value_of(const struct session *s, const struct el_reading *reading, const struct el_regress_cell *cell)
{
    double worst = reading->value;
    for (size_t i = 0; i < reading->n_values && s->asked->of == EL_OF_SLOWEST && !isnan(worst); i++) {
        const bool worse = cell->better == EL_BETTER_HIGHER ? reading->values[i] < worst : reading->values[i] > worst;
        if (worse) worst = reading->values[i];
    }
    return worst;
}

static enum el_status take_reading(struct session *s, const struct el_reading *reading, int side, int block)
{
    if (*s->asked->metrics ? !el_regress_listed(s->asked->metrics, reading->name) : reading->extra) return EL_OK;
    struct el_regress_cell *cell = NULL;
    for (size_t i = 0; i < s->set->n && !cell; i++)
        if (!strcmp(s->set->cells[i].name, reading->name)) cell = &s->set->cells[i];
    if (cell == NULL && is_unjudged(s, reading)) return leave_out(s->set, reading->name);
    if (cell == NULL) EL_TRY(add_cell(s, reading, block, &cell));
    const double ratio = el_readings_ratio(reading->unit, cell->unit);
    if (isnan(ratio))
        el_regress_fault(cell, EL_CELL_UNREADABLE, "its unit is '%s', but '%s' in the %s of %s %d", cell->unit,
                         reading->unit, s->sides[side], s->block, block);
    if (strcmp(reading->unit, reading->other_unit) != 0)
        el_regress_fault(cell, EL_CELL_UNREADABLE, "the %s prints it in '%s' and in '%s' in one launch, of %s %d",
                         s->sides[side], reading->unit, reading->other_unit, s->block, block);
    const double value = value_of(s, reading, cell) * (isnan(ratio) ? 1 : ratio);
    if (reading->n_values > cell->printed) cell->printed = reading->n_values;
    if (side == BASE) return el_regress_append(&cell->base, &cell->n_base, value);
    return el_regress_append(&cell->head, &cell->n_head, value);
}

/* What is missing; and what a unit says to be without noise is compared exactly only while it has shown none. */
static void conclude(const struct session *s, int block)
{
    for (size_t i = 0; i < s->set->n; i++) {
        struct el_regress_cell *cell = &s->set->cells[i];
        for (int side = s->ab ? BASE : HEAD; side <= HEAD; side++)
            if ((side == BASE ? cell->n_base : cell->n_head) < (size_t)block)
                el_regress_fault(cell, EL_CELL_UNREADABLE, "the %s did not print it in %s %d", s->sides[side], s->block,
                                 block);
        bool still = el_regress_constant(cell->base, cell->n_base) && el_regress_constant(cell->head, cell->n_head);
        bool exact = cell->claim == EL_CELL_EXACT_BY_NAME || (cell->claim == EL_CELL_EXACT_BY_UNIT && still);
        cell->kind = exact ? EL_CELL_EXACT : EL_CELL_PAIRED;
    }
}

/* What was asked for by name, and nobody prints. */
static enum el_status find_unprinted(const struct session *s)
{
    const struct el_regress_options *r = s->asked;
    const char *const options[][2] = {
        {"metric", r->metrics}, {"exact", r->exact}, {"higher", r->higher}, {"lower", r->lower}};
    for (size_t o = 0; o < sizeof options / sizeof options[0]; o++) {
        char list[EL_PATH_BYTES], *rest = NULL;
        snprintf(list, sizeof list, "%s", options[o][1]);
        for (char *name = strtok_r(list, ",", &rest); name; name = strtok_r(NULL, ",", &rest)) {
            bool found = false;
            for (size_t i = 0; i < s->set->n; i++) found = found || el_regress_listed(name, s->set->cells[i].name);
            if (!found)
                return el_fail(EL_ERR_INVALID, "--%s: %s prints '%s'%s", options[o][0],
                               s->ab ? "neither program" : "no launch", name,
                               o > 0 && *r->metrics ? ", or --metric leaves it out" : "");
        }
    }
    return EL_OK;
}

/* ---- a block ---- */

/* Names the side and the block in front of what is wrong. */
static enum el_status blame(const struct session *s, enum el_status status, const char *what, int side, int block)
{
    char text[EL_ERROR_TEXT_BYTES];
    snprintf(text, sizeof text, "%s", el_error_message());
    return el_fail(status, "%s%s, %s %d: %s", what, s->sides[side], s->block, block, text);
}

/* Its text is for free(). */
static enum el_status run_command(struct session *s, const char *command, const char *what, int side, int block,
                                  struct el_shell_output *output_p)
{
    const char *variables[EL_HOOK_VARIABLES + 1];
    const struct el_shell_spec spec = {.command = command,
                                       .environment = variables,
                                       .timeout_s = s->launching->options->timeout_s,
                                       .go_on = s->launching->go_on};
    el_python_hook_environment(&s->launching->hook, variables);
    enum el_status status = el_shell_run(&spec, output_p);
    if (status != EL_OK) return blame(s, status, what, side, block);
    s->cancelled = output_p->cancelled;
    return EL_OK;
}

/* What it printed, what its hook recorded, and what any program has. */
static enum el_status read_launch(struct session *s, const struct el_shell_output *output, struct el_readings *readings)
{
    struct el_training training;
    const bool trains = el_training_read(&s->launching->hook, &training) == EL_OK;
    enum el_status status = el_readings_parse(output->text, readings);
    if (readings->silent && (trains || el_readings_asks_measured(s->asked->metrics))) status = EL_OK;
    if (trains && status == EL_OK) status = el_readings_training(&training, readings);
    if (trains) el_training_free(&training);
    return status == EL_OK ? el_readings_measured(output, readings) : status;
}

static enum el_status launch(struct session *s, int side, int block, struct el_readings *readings)
{
    struct el_shell_output output = {.text = NULL};
    if (*s->asked->prepare) EL_TRY(run_command(s, s->asked->prepare, "--prepare for the ", side, block, &output));
    free(output.text);
    if (s->cancelled) return EL_OK;
    el_python_hook_end(&s->launching->hook); /* what is left is of --prepare */
    EL_TRY(run_command(s, s->commands[side], "", side, block, &output));
    enum el_status status = s->cancelled ? EL_OK : read_launch(s, &output, readings);
    el_python_hook_end(&s->launching->hook);
    free(output.text);
    return status == EL_OK ? EL_OK : blame(s, status, "", side, block);
}

int el_regress_first_side(uint64_t seed, int block)
{
    const struct el_rng_key key = {.seed = seed, .use = EL_RNG_ORDER, .id = 0xAB};
    return (int)(el_rng_u64(&key, (uint64_t)block, 0) >> 63);
}

static enum el_status run_block(struct session *s, int next)
{
    struct el_readings readings[2] = {{0}, {0}};
    int block = s->set->blocks + 1, first = HEAD;
    if (s->ab) first = el_regress_first_side(s->launching->options->train.seed, block);
    double begin_s = elapsed_s(s);
    enum el_status status = launch(s, first, block, &readings[first]);
    if (status == EL_OK && !s->cancelled && s->ab) status = launch(s, 1 - first, block, &readings[1 - first]);
    for (int side = BASE; side <= HEAD && !s->cancelled; side++)
        for (size_t i = 0; i < readings[side].n && status == EL_OK; i++)
            status = take_reading(s, &readings[side].rows[i], side, block);
    for (int side = BASE; side <= HEAD; side++) el_readings_free(&readings[side]);
    if (status != EL_OK || s->cancelled) return status;
    s->longest_s = fmax(s->longest_s, elapsed_s(s) - begin_s);
    s->set->blocks = block;
    conclude(s, block);
    if (block == 1) EL_TRY(find_unprinted(s));
    if (s->set->n == 0) {
        const char *name = json_string_value(json_array_get(s->set->unjudged, 0));
        return el_fail(EL_ERR_INVALID,
                       "nothing can be judged: of '%s'%s no unit says which way is better: give --higher or --lower %s",
                       name, json_array_size(s->set->unjudged) > 1 ? " and the others" : "", name);
    }
    if (s->launching->out) el_regress_progress_block(s->launching, s->set, next, elapsed_s(s));
    return EL_OK;
}

/* ---- sessions ---- */

/* The block after which the stage's analysis comes, and whether it is the last one. */
static int analysis_at(const struct el_regress_options *asked, int stage, bool *last_p)
{
    int most = asked->blocks > 0 ? asked->blocks : asked->max_samples;
    int at = stage < N_ANALYSES && asked->blocks == 0 ? ANALYSES[stage] : most;
    *last_p = at >= most || stage >= N_ANALYSES - 1;
    return *last_p ? most : at;
}

static struct session begin(struct el_regress_launching *launching, struct el_regress_set *set)
{
    const struct el_options *options = launching->options;
    const struct el_regress_options *asked = &options->regress;
    bool ab = asked->ab[0];
    struct session s = {.launching = launching,
                        .asked = asked,
                        .ab = ab,
                        .set = set,
                        .commands = {asked->ab, ab ? options->dir : asked->from},
                        .sides = {"base", ab ? "head" : "program"},
                        .block = ab ? "block" : "launch",
                        .begin_ns = el_clock_ns()};
    el_regress_name_sides(set, s.commands[BASE], s.commands[HEAD]);
    set->of_slowest = asked->of == EL_OF_SLOWEST;
    return s;
}

enum el_status el_regress_ab(struct el_regress_launching *launching, struct el_regress_set *set)
{
    struct session s = begin(launching, set);
    for (bool last = false; !last && !s.cancelled;) {
        int next = analysis_at(s.asked, set->stage, &last);
        while (set->blocks < next && !s.cancelled) {
            double budget_s = s.asked->budget_s < 0 || set->blocks == 0 ? INFINITY : s.asked->budget_s;
            if (elapsed_s(&s) + s.longest_s > budget_s) {
                last = true;
                break;
            }
            EL_TRY(run_block(&s, next));
            set->last_analysis = false;
            el_regress_judge(set); /* what cannot be read is seen at once; all else waits for the analysis */
            if (el_regress_outcome(set) == EL_REGRESS_USE) return EL_OK;
        }
        set->last_analysis = last || s.cancelled;
        el_regress_judge(set);
        if (el_regress_outcome(set) != EL_REGRESS_INCONCLUSIVE) return EL_OK; /* more would not change it */
        if (!last) set->stage++;
    }
    return EL_OK;
}

/* What makes a figure of a pair unreadable is an error here: nothing is judged that could say so. */
enum el_status el_regress_launches(struct el_regress_launching *launching, struct el_regress_set *set)
{
    struct session s = begin(launching, set);
    while (set->blocks < s.asked->launches && !s.cancelled) {
        EL_TRY(run_block(&s, s.asked->launches));
        for (size_t i = 0; i < set->n; i++)
            if (set->cells[i].fault != EL_CELL_SAME)
                return el_fail(EL_ERR_INVALID, "%s: %s", set->cells[i].name, set->cells[i].reason);
    }
    return EL_OK;
}
