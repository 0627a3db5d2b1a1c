/* The largest tags have columns; the others are summed. */
#include <math.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/base/table.h"
#include "bench/base/text.h"
#include "bench/imbalance/imbalance.h"
#include "bench/plot/data_file.h"
#include "bench/report/ranks.h"
#include "bench/report/report.h"

enum { NAME_WIDTH = 14, WIDE = 8, WIDTH = 7, CARDS_SHOWN = 8, CELLS_MAX = 18 };

/* Of the largest tag: smaller ones are among the others. */
#define COLUMN_RATIO 0.003

/* Smaller differences are rounding of the shares, and shown as none. */
#define DIFFERENCE_MIN_BYTES (1048576 * 0.001)

static const struct el_column tag_columns[] = {
    EL_MIB("model", WIDTH, "at_peak_by_tag.param"),       EL_MIB("grad", WIDTH, "at_peak_by_tag.grad"),
    EL_MIB("optim.", WIDTH, "at_peak_by_tag.optimizer"),  EL_MIB("buffer", WIDTH, "at_peak_by_tag.buffer"),
    EL_MIB("activ.", WIDTH, "at_peak_by_tag.activation"), EL_MIB("input", WIDTH, "at_peak_by_tag.input"),
    EL_MIB("output", WIDTH, "at_peak_by_tag.output"),     EL_MIB("cast", WIDTH, "at_peak_by_tag.cast"),
    EL_MIB("bucket", WIDTH, "at_peak_by_tag.bucket"),     EL_MIB("worksp.", WIDTH, "at_peak_by_tag.workspace"),
    EL_MIB("mailbox", WIDTH, "at_peak_by_tag.mailbox"),   EL_MIB("allow.", WIDTH, "at_peak_by_tag.allowance"),
    EL_MIB("padding", WIDTH, "at_peak_by_tag.padding")};
enum { N_TAGS = sizeof tag_columns / sizeof tag_columns[0] };

static double bytes_at(const json_t *card, const char *path)
{
    double bytes = el_json_number(card, path);
    return isnan(bytes) ? 0 : bytes;
}

static bool has_figure(const json_t *trials, const char *path)
{
    return !isnan(el_json_highest(trials, path));
}

/* "  main    cpu:0"; for the difference "  main - others". */
static void show_name(const json_t *card, const json_t *context, char *text)
{
    const char *against = el_json_text(card, "against", NULL);
    (void)context;
    if (against)
        snprintf(text, EL_CELL_BYTES, "  main - %s", strcmp(against, "second") ? "others" : "second");
    else
        snprintf(text, EL_CELL_BYTES, "  %-7s %s", el_json_text(card, "card", "?"), el_json_text(card, "device", "?"));
}

static void choose_tags(const json_t *trials, int room, bool chosen[N_TAGS])
{
    double sizes[N_TAGS] = {0}, least = 0;
    EL_EACH(trial, trials) {
        const json_t *cards = json_object_get(trial, "cards");
        for (int t = 0; t < N_TAGS && json_array_size(cards) > 1; t++)
            sizes[t] = fmax(sizes[t], el_json_highest(cards, tag_columns[t].path));
    }
    for (int t = 0; t < N_TAGS; t++) least = fmax(least, sizes[t] * COLUMN_RATIO);
    for (; room > 0; room--) {
        int most = 0;
        for (int t = 1; t < N_TAGS; t++)
            if (sizes[t] > sizes[most]) most = t;
        if (!(sizes[most] > least)) break;
        chosen[most] = true;
        sizes[most] = 0;
    }
}

static void choose_columns(const json_t *trials, bool chosen[N_TAGS], struct el_column columns[CELLS_MAX])
{
    bool ran = has_figure(trials, "difference.sent_bytes"),
         has_rest = has_figure(trials, "difference.unattributed_bytes");
    struct el_column *next = columns;
    choose_tags(trials, (EL_REPORT_COLUMNS - NAME_WIDTH - WIDE * (1 + has_rest) - 2 * WIDTH - 3 * WIDTH * ran) / WIDTH,
                chosen);
    *next++ = (struct el_column)EL_SHOWN("card", -NAME_WIDTH, show_name);
    *next++ = (struct el_column)EL_MIB("memory", WIDE, "peak_bytes");
    for (int t = 0; t < N_TAGS; t++)
        if (chosen[t]) *next++ = tag_columns[t];
    *next++ = (struct el_column)EL_MIB("other", WIDTH, "other_bytes");
    *next++ = (struct el_column)EL_MIB("peaks", WIDTH, "sum_of_tag_peaks_bytes");
    if (has_rest) *next++ = (struct el_column)EL_MIB("unattr.", WIDE, "unattributed_bytes");
    if (ran) {
        *next++ = (struct el_column)EL_FIGURE("busy %", WIDTH, "busy_pct");
        *next++ = (struct el_column)EL_MIB("sent", WIDTH, "sent_bytes");
        *next++ = (struct el_column)EL_MIB("recv", WIDTH, "received_bytes");
    }
    *next = (struct el_column)EL_NO_MORE;
}

static void put_card(const struct el_table *table, json_t *card, const bool chosen[N_TAGS])
{
    double other_bytes = 0;
    for (int t = 0; t < N_TAGS; t++)
        if (!chosen[t]) other_bytes += bytes_at(card, tag_columns[t].path);
    el_json_put_real(card, "other_bytes", other_bytes);
    el_table_row(table, EL_TABLE_PLAIN, card);
}

/* Replicas are copies of the parameters: one column. */
static void fold_replicas(json_t *item)
{
    json_t *tags = json_object_get(item, "at_peak_by_tag");
    EL_EACH(card, item) fold_replicas(card);
    if (tags) el_json_put_real(tags, "param", bytes_at(tags, "param") + bytes_at(tags, "replica"));
}

static void round_small(json_t *figures)
{
    EL_EACH_KEY(key, value, figures)
        if (strcmp(key, "busy_pct") && fabs(json_number_value(value)) < DIFFERENCE_MIN_BYTES) json_real_set(value, 0);
}

static void put_cards(const struct el_table *table, json_t *trial, const bool chosen[N_TAGS])
{
    json_t *cards = json_object_get(trial, "cards"), *difference = json_object_get(trial, "difference");
    double low = INFINITY, high = 0;
    char from[EL_FIGURE_BYTES], to[EL_FIGURE_BYTES];
    size_t n = json_array_size(cards);
    EL_EACH(card, cards) {
        double bytes = el_json_number(card, "peak_bytes");
        if (card_at.i < CARDS_SHOWN) put_card(table, card, chosen);
        if (card_at.i < CARDS_SHOWN) continue;
        low = fmin(low, bytes);
        high = fmax(high, bytes);
    }
    if (n > CARDS_SHOWN)
        fprintf(table->out, "  and %zu more cards, %s to %s MiB each (--json has them all)\n", n - CARDS_SHOWN,
                el_text_mib(low, from), el_text_mib(high, to));
    EL_EACH(sum, json_object_get(trial, "shared_cards")) put_card(table, sum, chosen);
    round_small(difference);
    round_small(json_object_get(difference, "at_peak_by_tag"));
    put_card(table, difference, chosen);
}

/* "dp, batch 256 (2 x 128)" */
static void name_trial(const json_t *trial, char *text, size_t bytes)
{
    char batch[EL_CELL_BYTES], mode[EL_CELL_BYTES];
    el_table_batch(trial, NULL, batch);
    el_table_mode(trial, mode, sizeof mode);
    snprintf(text, bytes, "%.100s, batch %.64s", mode, batch);
}

static void put_trial(const struct el_table *table, json_t *trial, const bool chosen[N_TAGS])
{
    char name[EL_CELL_BYTES], line[EL_CELL_BYTES + 64];
    const char *verdict = el_report_verdict(trial);
    bool doubtful = !strcmp(verdict, "suspect") || !strcmp(verdict, "unchecked");
    bool has_cards = json_is_object(json_object_get(trial, "difference"));
    name_trial(trial, name, sizeof name);
    if (!el_report_is_ok(trial)) {
        snprintf(line, sizeof line, "%s: ", name);
        el_report_failed(trial, line, "  ", table->out);
    } else if (has_cards) {
        snprintf(line, sizeof line, "%s: %s%s", name, verdict, doubtful ? " times" : "");
        el_table_line(table->out, doubtful ? EL_TABLE_YELLOW : EL_TABLE_BOLD, line);
    }
    if (has_cards) put_cards(table, trial, chosen);
}

static void put_measure(const struct el_table *table, const json_t *measures, const char *name, const char *of,
                        const char *doubt)
{
    json_t *row = json_pack("{s:s, s:s, s:s}", "name", name, "of", of, "doubt", doubt);
    json_object_update_new(row, json_deep_copy(measures));
    if (json_is_number(json_object_get(row, "max_over_mean_minus_1"))) el_table_row(table, EL_TABLE_PLAIN, row);
    json_decref(row);
}

static void put_measures(const json_t *trials, FILE *out)
{
    static const struct el_column columns[] = EL_COLUMNS(
        EL_TEXT("how uneven", -25, "name"), EL_TEXT("", -7, "of"),
        EL_RATIO("max/mean - 1", 13, "max_over_mean_minus_1"), EL_PERCENT("imbalance %", 12, "imbalance_pct"),
        EL_RATIO("load balance", 13, "lb"), EL_RATIO("CV", 8, "cv"), EL_RATIO("first/rest", 11, "first_over_rest"),
        EL_TEXT("", -9, "doubt", .gap = 2));
    const struct el_table table = {.columns = columns, .out = out};
    el_table_heads(&table, EL_TABLE_BOLD);
    EL_EACH(trial, trials) {
        const json_t *measures = json_object_get(trial, "imbalance");
        const char *verdict = el_report_verdict(trial);
        char name[EL_CELL_BYTES] = "  ";
        if (!json_is_object(json_object_get(trial, "difference"))) continue;
        name_trial(trial, name + 2, sizeof name - 2);
        put_measure(&table, json_object_get(measures, "memory"), name, "memory", "");
        put_measure(&table, json_object_get(measures, "busy"), "", "busy", strcmp(verdict, "valid") ? verdict : "");
        put_measure(&table, json_object_get(measures, "bytes"), "", "sent", "");
    }
}

static void put_times(const json_t *trials, FILE *out)
{
    bool any = false;
    EL_EACH(trial, trials) {
        const json_t *ranks = el_json_at(trial, "time.ranks");
        char name[EL_CELL_BYTES];
        if (!ranks) continue;
        if (!any) fputc('\n', out);
        if (!any) el_ranks_heads(out);
        any = true;
        name_trial(trial, name, sizeof name);
        el_table_line(out, EL_TABLE_BOLD, name);
        el_ranks_table(ranks, out);
    }
    if (any) el_ranks_explain(out);
}

static void say(const json_t *trial, const char *path, FILE *out)
{
    const json_t *told = el_json_at(trial, path);
    const char *cause = el_json_text(told, "cause.sentence", NULL);
    char mode[EL_CELL_BYTES];
    el_table_mode(trial, mode, sizeof mode);
    if (el_json_text(told, "sentence", NULL))
        EL_ITEM(out, "%s, batch %.0f: %s.%s%s%s", mode, el_json_number(trial, "global_batch"),
                el_json_text(told, "sentence", ""), cause ? " Cause: " : "", cause ? cause : "", cause ? "." : "");
}

void el_imbalance_print(const json_t *run, FILE *out)
{
    struct el_column columns[CELLS_MAX];
    const struct el_table table = {.columns = columns, .out = out};
    bool chosen[N_TAGS] = {false};
    char title[EL_TITLE_BYTES];
    json_t *document = el_imbalance_document(run, NULL, NULL), *trials = json_object_get(document, "trials");
    EL_EACH(trial, trials) {
        fold_replicas(json_object_get(trial, "cards"));
        fold_replicas(json_object_get(trial, "shared_cards"));
        fold_replicas(json_object_get(trial, "difference"));
    }
    choose_columns(trials, chosen, columns);
    el_data_title(json_object_get(run, "trials"), title);
    fprintf(out, "Card by card: %s\n\n", title);
    el_table_heads(&table, EL_TABLE_BOLD);
    EL_EACH(trial, trials) put_trial(&table, trial, chosen);
    fputc('\n', out);
    el_text_say("", "", out,
                "MiB of the ledger at each card's own peak. model: the parameters, or a replica of them. peaks: sum of "
                "each tag's own peak, without workspace: what nvidia-smi shows for a caching allocator.%s%s",
                has_figure(trials, "difference.unattributed_bytes")
                    ? " unattr.: what the system reports beyond that peak."
                    : "",
                has_figure(trials, "difference.sent_bytes") ? " sent, recv: MiB per step." : "");
    fputc('\n', out);
    put_measures(trials, out);
    put_times(trials, out);
    el_imbalance_put_routing(trials, out);
    el_report_warnings(json_object_get(run, "trials"), "", out);
    fputc('\n', out);
    el_imbalance_explain(json_object_get(run, "trials"), out);
    EL_EACH(trial, trials) {
        say(trial, "time.blame", out);
        say(trial, "time.longest", out);
        say(trial, "bytes", out);
        say(trial, "routing", out);
    }
    json_decref(document);
}

/* Only the ledger has tags: a watch's devices have none. */
bool el_imbalance_has_cards(const json_t *trial)
{
    const json_t *devices = json_object_get(trial, "per_device");
    return json_array_size(devices) > 1 && json_object_size(el_json_at(devices, "0.memory.at_peak_by_tag")) > 0;
}

/* Tags newer than the record count 0. */
double el_imbalance_highs(const json_t *device)
{
    const json_t *tags = el_json_at(device, "memory.peak_by_tag");
    double sum = tags ? 0 : NAN;
    for (int t = 0; t < EL_TAG_COUNT; t++) {
        const char *name = el_tag_name((enum el_tag)t);
        if (t != EL_TAG_WORKSPACE && t != EL_TAG_ALLOWANCE && t != EL_TAG_PADDING && json_object_get(tags, name))
            sum += el_json_number(tags, name);
    }
    return sum;
}

static json_t *card_of(const json_t *device, size_t position)
{
    static const char *const copied[] = {"device",
                                         "host",
                                         "memory.peak_bytes",
                                         "memory.at_peak_by_tag",
                                         "memory.peak_by_tag",
                                         "memory.driver_bytes",
                                         "memory.library_bytes",
                                         "memory.unattributed_bytes",
                                         "utilization.busy_pct",
                                         "sent_bytes",
                                         "received_bytes",
                                         NULL};
    static const char *const names[] = {"main", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth"};
    char number[32];
    snprintf(number, sizeof number, "card %zu", position + 1);
    json_t *card = el_json_of(EL_KEY("card", position < sizeof names / sizeof names[0] ? names[position] : number));
    el_json_copy(card, device, copied);
    el_json_put_real(card, "sum_of_tag_peaks_bytes", el_imbalance_highs(device));
    return card;
}

static json_t *difference_of(const json_t *cards, const char *sentence)
{
    static const char *const figures[] = {"peak_bytes", "sum_of_tag_peaks_bytes", "unattributed_bytes", "busy_pct",
                                          "sent_bytes", "received_bytes"};
    json_t *tags = json_object();
    json_t *difference = el_json_of(EL_KEY("against", json_array_size(cards) == 2 ? "second" : "mean of the others"),
                                    EL_KEY("at_peak_by_tag", tags), EL_KEY("sentence", sentence));
    for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++)
        el_json_put_real(difference, figures[i], el_excess_of(cards, figures[i]));
    for (int t = 0; t < EL_TAG_COUNT; t++) {
        char path[64];
        snprintf(path, sizeof path, "at_peak_by_tag.%s", el_tag_name((enum el_tag)t));
        if (el_json_at(json_array_get(cards, 0), path))
            el_json_put_real(tags, el_tag_name((enum el_tag)t), el_excess_of(cards, path));
    }
    return difference;
}

static json_t *trial_of(const json_t *trials, const json_t *trial)
{
    static const char *const copied[] = {
        "id",     "mode",    "model",    "dtype",     "optimizer", "global_batch", "batch_per_device", "status",
        "reason", "verdict", "warnings", "simulated", "imbalance", "config",       "chosen",           NULL};
    const json_t *devices = json_object_get(trial, "per_device");
    bool several = el_imbalance_has_cards(trial);
    json_t *document = json_object(), *cards = json_array();
    char sentence[EL_SENTENCE_BYTES];
    el_json_copy(document, trial, copied);
    EL_EACH(device, devices) json_array_append_new(cards, card_of(device, device_at.i));
    if (several) el_imbalance_sentence(trials, trial, sentence);
    el_json_put_all(document, EL_KEY("cards", cards), EL_KEY("shared_cards", el_report_shared_cards(cards)),
                    EL_KEY("difference", several ? difference_of(cards, sentence) : json_null()),
                    EL_KEY("time", el_imbalance_time(trial)), EL_KEY("bytes", el_imbalance_bytes(trial)),
                    EL_KEY("routing", el_imbalance_routing(trial)));
    return document;
}

json_t *el_imbalance_document(const json_t *run, const char *preset, const char *dir)
{
    const json_t *trials = json_object_get(run, "trials");
    bool predicted = el_json_is(trials, "0.verdict", "predicted");
    json_t *list = json_array();
    EL_EACH(trial, trials) json_array_append_new(list, trial_of(trials, trial));
    return el_json_of(EL_KEY("preset", preset), EL_KEY("dir", dir), EL_KEY("predicted", predicted),
                      EL_KEY("trials", list), EL_KEY("published", el_imbalance_published(run, preset)));
}
