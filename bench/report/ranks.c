/* The table of ranks, and who is blamed for waits. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/base/table.h"
#include "bench/base/text.h"
#include "bench/report/ranks.h"
#include "bench/report/report.h"

#define LONGER_RATIO 1.1

enum { NAMED_MAX = 4 };

json_t *el_ranks_json(const struct el_rank_row *rows, int n)
{
    json_t *ranks = json_array();
    for (const struct el_rank_row *row = rows; row < rows + n; row++)
        json_array_append_new(
            ranks,
            el_json_of(EL_KEY("rank", row->name), EL_KEY("compute_ms", 1e3 * row->compute_s),
                       EL_KEY("last_pct", row->last_pct), EL_KEY("late_ms", 1e3 * row->late_s),
                       EL_KEY("late_low_ms", 1e3 * row->late_low_s), EL_KEY("caused_ms", 1e3 * row->caused_s),
                       EL_KEY("wait_ms", 1e3 * row->wait_s), EL_KEY("wait_exposed_ms", 1e3 * row->wait_exposed_s),
                       EL_KEY("transfer_ms", 1e3 * row->transfer_s), EL_KEY("exposed_ms", 1e3 * row->exposed_s),
                       EL_KEY("sent_bytes", row->sent_bytes)));
    return ranks;
}

static void ranks_sentence(const struct el_rank_row *rows, int n, const struct el_ranks_blame *blame,
                           char text[EL_RANKS_SENTENCE_BYTES]);

json_t *el_ranks_blame_json(const struct el_rank_row *rows, int n, const struct el_ranks_blame *blame)
{
    char sentence[EL_RANKS_SENTENCE_BYTES];
    ranks_sentence(rows, n, blame, sentence);
    return el_json_of(EL_KEY("kind", el_blame_name(blame->kind)),
                      EL_KEY("rank", blame->who < 0 ? NULL : rows[blame->who].name), EL_KEY("stays", blame->stays),
                      EL_KEY("late_ranks", blame->n_late), EL_KEY("step", el_json_count(blame->step)),
                      EL_KEY("late_ms", 1e3 * blame->late_s), EL_KEY("caused_pct", blame->caused_pct),
                      EL_KEY("wait_ms", 1e3 * blame->wait_s), EL_KEY("transfer_ms", 1e3 * blame->transfer_s),
                      EL_KEY("step_ms", 1e3 * blame->step_s), EL_KEY("sentence", sentence));
}

static double compute_of_others(const struct el_rank_row *rows, int n, int who)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        if (i != who) sum += rows[i].compute_s;
    return sum / (n - 1);
}

double el_ranks_compute_ratio(const struct el_rank_row *rows, int n, int who)
{
    double others = compute_of_others(rows, n, who);
    return others > 0 ? rows[who].compute_s / others : NAN;
}

static int count_late(const struct el_ranks_blame *blame)
{
    return blame->n_late > 1 ? blame->n_late : 1;
}

/* "rank 1", "ranks 1 and 3", "3 of 8 ranks": those that are late, or the others. */
static const char *name_ranks(const struct el_rank_row *rows, int n, const struct el_ranks_blame *blame, bool late,
                              char text[EL_RANKS_SENTENCE_BYTES])
{
    int k = 0, n_late = count_late(blame), all = late ? n_late : n - n_late;
    *text = 0;
    for (int i = 0; i < n; i++) {
        if (el_ranks_is_late(rows, i, blame) != late) continue;
        const char *space = strchr(rows[i].name, ' '), *name = all > 1 && k && space ? space + 1 : rows[i].name;
        el_text_append(text, EL_RANKS_SENTENCE_BYTES, "%s%s", k == 0 ? "" : k + 1 < all ? ", " : " and ", name);
        k++;
    }
    if (all > 1 && !strncmp(text, "rank ", 5) && strlen(text) + 2 < EL_RANKS_SENTENCE_BYTES) {
        memmove(text + 5, text + 4, strlen(text + 4) + 1);
        text[4] = 's';
    }
    if (all > NAMED_MAX || (!late && n_late == 1 && n > 2))
        snprintf(text, EL_RANKS_SENTENCE_BYTES, late ? "%d of %d ranks" : "the others", all, n);
    return text;
}

/* "; cpu:0 waits 25.3 of 64.1 ms for it" */
static void add_wait(const struct el_rank_row *rows, int n, const struct el_ranks_blame *blame, char *text)
{
    char wait[EL_FIGURE_BYTES], step[EL_FIGURE_BYTES], others[EL_RANKS_SENTENCE_BYTES];
    const int n_late = count_late(blame);
    el_text_append(text, EL_RANKS_SENTENCE_BYTES, "; %s %s %s of %s ms for %s",
                   name_ranks(rows, n, blame, false, others), n - n_late == 1 ? "waits" : "wait",
                   el_text_figure(1e3 * blame->wait_s, wait), el_text_figure(1e3 * blame->step_s, step),
                   n_late > 1 ? "them" : "it");
}

/* The cause is longer computation if it is at least half of the wait. */
static void say_stays(const struct el_rank_row *rows, int n, const struct el_ranks_blame *blame, char *text)
{
    char figure[EL_FIGURE_BYTES], late[EL_RANKS_SENTENCE_BYTES], others[EL_RANKS_SENTENCE_BYTES];
    double own_s = 0, others_s = 0;
    const int n_late = count_late(blame);
    for (int i = 0; i < n; i++) *(el_ranks_is_late(rows, i, blame) ? &own_s : &others_s) += rows[i].compute_s;
    own_s /= n_late, others_s /= n - n_late;
    const double ratio = others_s > 0 ? own_s / others_s : NAN;
    bool longer = ratio >= LONGER_RATIO && own_s - others_s > blame->wait_s / 2;
    name_ranks(rows, n, blame, true, late);
    if (longer)
        el_text_append(text, EL_RANKS_SENTENCE_BYTES, "%s compute%s %s times as long as %s", late,
                       n_late > 1 ? "" : "s", el_text_figure(ratio, figure),
                       n - n_late == 1 ? name_ranks(rows, n, blame, false, others) : "the others do on average");
    else
        el_text_append(text, EL_RANKS_SENTENCE_BYTES, "%s %s %s ms late%s", late, n_late > 1 ? "come" : "comes",
                       el_text_figure(1e3 * blame->late_s, figure),
                       isnan(own_s) ? "" /* what they compute is not known */
                       : n_late > 1 ? ", though they compute no longer"
                                    : ", though it computes no longer");
    add_wait(rows, n, blame, text);
}

static void say_once(const struct el_rank_row *rows, int n, const struct el_ranks_blame *blame, char *text)
{
    char wait[EL_FIGURE_BYTES], others[EL_RANKS_SENTENCE_BYTES];
    el_text_append(text, EL_RANKS_SENTENCE_BYTES,
                   "%s is late in step %lld alone, where %s %s %s ms for it; without that step no rank is late by what "
                   "is worth speaking of",
                   rows[blame->who].name, (long long)blame->step, name_ranks(rows, n, blame, false, others),
                   n == 2 ? "waits" : "wait", el_text_figure(1e3 * blame->wait_s, wait));
}

static void say_wanders(const struct el_rank_row *rows, int n, const struct el_ranks_blame *blame, char *text)
{
    char wait[EL_FIGURE_BYTES], step[EL_FIGURE_BYTES];
    double low = INFINITY, high = 0;
    el_text_append(text, EL_RANKS_SENTENCE_BYTES, "no single device is always last (");
    for (int i = 0; i < n; i++) {
        low = fmin(low, rows[i].last_pct);
        high = fmax(high, rows[i].last_pct);
        if (n <= NAMED_MAX)
            el_text_append(text, EL_RANKS_SENTENCE_BYTES, "%s%s in %.0f %%%s", i ? ", " : "", rows[i].name,
                           rows[i].last_pct, i ? "" : " of steps");
    }
    if (n > NAMED_MAX) el_text_append(text, EL_RANKS_SENTENCE_BYTES, "each in %.0f to %.0f %% of steps", low, high);
    el_text_append(text, EL_RANKS_SENTENCE_BYTES, "); on average a device waits %s ms of each %s ms step",
                   el_text_figure(1e3 * blame->wait_s, wait), el_text_figure(1e3 * blame->step_s, step));
}

static void say_wire(const struct el_rank_row *rows, const struct el_ranks_blame *blame, char *text)
{
    char transfer[EL_FIGURE_BYTES], step[EL_FIGURE_BYTES], wait[EL_FIGURE_BYTES];
    el_text_append(text, EL_RANKS_SENTENCE_BYTES,
                   "the network is the limit, not a rank: exposed transfers take %s of %s ms, waits %s",
                   el_text_figure(1e3 * blame->transfer_s, transfer), el_text_figure(1e3 * blame->step_s, step),
                   el_text_figure(1e3 * blame->wait_s, wait));
    if (blame->stays)
        el_text_append(text, EL_RANKS_SENTENCE_BYTES, "; %s computes longer and is late too, by %s ms",
                       rows[blame->who].name, el_text_figure(1e3 * blame->late_s, wait));
}

static void ranks_sentence(const struct el_rank_row *rows, int n, const struct el_ranks_blame *blame,
                           char text[EL_RANKS_SENTENCE_BYTES])
{
    char wait[EL_FIGURE_BYTES], transfer[EL_FIGURE_BYTES], step[EL_FIGURE_BYTES];
    text[0] = '\0';
    switch (blame->kind) {
    case EL_BLAME_STAYS:
        say_stays(rows, n, blame, text);
        break;
    case EL_BLAME_ONCE:
        say_once(rows, n, blame, text);
        break;
    case EL_BLAME_AT_TIMES:
        el_text_append(text, EL_RANKS_SENTENCE_BYTES, "%s is late at times, and causes %.0f %% of all waits",
                       rows[blame->who].name, blame->caused_pct);
        add_wait(rows, n, blame, text);
        break;
    case EL_BLAME_WANDERS:
        say_wanders(rows, n, blame, text);
        break;
    case EL_BLAME_WIRE:
        say_wire(rows, blame, text);
        break;
    default:
        el_text_append(text, EL_RANKS_SENTENCE_BYTES,
                       "no rank is late by what is worth speaking of: of %s ms waits take %s, transfers %s",
                       el_text_figure(1e3 * blame->step_s, step), el_text_figure(1e3 * blame->wait_s, wait),
                       el_text_figure(1e3 * blame->transfer_s, transfer));
    }
}

static const struct el_column rank_columns[] = EL_COLUMNS(
    EL_TEXT("rank", -14, "rank"), EL_FIGURE("compute ms", 11, "compute_ms"), EL_PERCENT("last %", 8, "last_pct"),
    EL_FIGURE("late ms", 9, "late_ms"), EL_FIGURE("caused ms", 11, "caused_ms"), EL_FIGURE("wait ms", 9, "wait_ms"),
    EL_FIGURE("transfer ms", 13, "transfer_ms"), EL_FIGURE("exposed ms", 12, "exposed_ms"),
    EL_MIB("sent MiB", 10, "sent_bytes"));

void el_ranks_heads(FILE *out)
{
    el_table_heads(&(struct el_table){.columns = rank_columns, .out = out}, EL_TABLE_BOLD);
}

void el_ranks_table(const json_t *ranks, FILE *out)
{
    const struct el_table table = {.columns = rank_columns, .out = out};
    EL_EACH(rank, ranks) el_table_row(&table, EL_TABLE_PLAIN, rank);
}

void el_ranks_explain(FILE *out)
{
    el_text_say(
        "", "", out,
        "A step on average. last: steps in which it came last; late: its arrival after the mean of the others', "
        "both at the collective of a step where arrivals lie furthest apart. caused: the others' waits for it. "
        "exposed: waits and transfers that no computation hides.");
}
