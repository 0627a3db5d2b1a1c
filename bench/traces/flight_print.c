/* What a job hangs in, for people. */
#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/base/table.h"
#include "bench/base/text.h"
#include "bench/traces/flight.h"

enum { RANKS_SHOWN = 64 };

static const json_t *shown_call(const json_t *rank)
{
    const json_t *waits = json_object_get(rank, "waits_in");
    return json_is_object(waits) ? waits : json_object_get(rank, "last");
}

static void show_call(const json_t *rank, const json_t *context, char *text)
{
    const json_t *call = shown_call(rank);
    (void)context;
    snprintf(text, EL_CELL_BYTES, "%.30s", el_json_text(call, "operation", "no call"));
    if (el_json_whole(call, "number") >= 0)
        el_text_append(text, EL_CELL_BYTES, " no. %" PRId64, el_json_whole(call, "number"));
}

static void show_state(const json_t *rank, const json_t *context, char *text)
{
    (void)context;
    const char *state = el_json_text(shown_call(rank), "state", "-");
    snprintf(text, EL_CELL_BYTES, "%s", !strcmp(state, "ended") ? "ended" : "waits");
}

static void show_time(const json_t *rank, const json_t *context, char *text)
{
    (void)context;
    const char *utc = el_json_text(shown_call(rank), "entered_utc", ""), *t = strchr(utc, 'T');
    snprintf(text, EL_CELL_BYTES, "%.12s", t ? t + 1 : "-");
}

static void show_group(const json_t *rank, const json_t *context, char *text)
{
    (void)context;
    snprintf(text, EL_CELL_BYTES, "%.24s", el_json_text(shown_call(rank), "group", "-"));
}

static void show_where(const json_t *rank, const json_t *context, char *text)
{
    (void)context;
    snprintf(text, EL_CELL_BYTES, "%.60s", el_json_text(shown_call(rank), "where", ""));
}

static const struct el_column rank_columns[] = EL_COLUMNS(
    EL_COUNT("rank", 5, "rank"), EL_COUNT("calls", 7, "calls"), EL_COUNT("ended", 7, "ended"),
    EL_SHOWN("last", -6, show_state, .gap = 2), EL_SHOWN("in", -24, show_call), EL_SHOWN("group", -16, show_group),
    EL_SHOWN("entered (UTC)", -14, show_time), EL_SHOWN("from", -1, show_where));

static const struct el_column late_columns[] =
    EL_COLUMNS(EL_COUNT("rank", 5, "rank"), EL_PERCENT("last %", 9, "last_pct"), EL_FIGURE("late ms", 10, "late_ms"),
               EL_FIGURE("caused ms", 11, "caused_ms"));

/* The cause's ranks and those that wait come first where not all have room. */
static json_t *shown_ranks(const json_t *document)
{
    json_t *shown = json_array(), *ranks = json_object_get(document, "ranks");
    EL_EACH(blamed, el_json_at(document, "cause.ranks"))
        EL_EACH(rank, ranks)
            if (json_array_size(ranks) > RANKS_SHOWN && json_array_size(shown) < RANKS_SHOWN / 2 &&
                json_equal(json_object_get(rank, "rank"), blamed))
                json_array_append(shown, rank);
    EL_EACH(rank, ranks)
        if (json_array_size(shown) < RANKS_SHOWN) json_array_append(shown, rank);
    return shown;
}

static void say_list(const char *before, const json_t *list, const char *after, FILE *out)
{
    char text[256] = "";
    EL_EACH(item, list)
        if (json_is_string(item))
            el_text_append(text, sizeof text, "%s%s", *text ? ", " : "", json_string_value(item));
        else
            el_text_append(text, sizeof text, "%s%" JSON_INTEGER_FORMAT, *text ? ", " : "", json_integer_value(item));
    if (*text) el_text_say("! ", "  ", out, "%s%s%s", before, text, after);
}

static void say_sentence(const char *sentence, FILE *out)
{
    if (*sentence) el_text_say("", "", out, "%c%s.", toupper((unsigned char)*sentence), sentence + 1);
}

void el_flight_print(const json_t *document, FILE *out)
{
    json_t *shown = shown_ranks(document);
    const size_t all = json_array_size(json_object_get(document, "ranks")), n = json_array_size(shown);
    el_text_say("", "", out, "Dumps of PyTorch's flight recorder (version %s): %zu rank%s, %" PRId64 " calls.",
                el_json_text(document, "version", "?"), all, all == 1 ? "" : "s", el_json_whole(document, "calls"));
    fprintf(out, "\n");
    el_table_list(&(struct el_table){.columns = rank_columns, .out = out}, "", shown);
    if (all > n) fprintf(out, "... and %zu more ranks: --json has all\n", all - n);
    fprintf(out, "\n");
    say_sentence(el_json_text(document, "cause.sentence", ""), out);
    say_list("No dump is of rank ", json_object_get(document, "missing_dumps"), ".", out);
    say_list("Left out, of ranks that another file is of: ", json_object_get(document, "left_out"), ".", out);
    const bool hangs = !el_json_is(document, "cause.kind", "none"), one = el_json_whole(document, "late.rank") >= 0;
    if (el_json_whole(document, "late.calls") < 2 || (hangs && !one)) return;
    char title[96];
    snprintf(title, sizeof title, "\nWho came last, over %" PRId64 " calls that all members entered and that ended\n",
             el_json_whole(document, "late.calls"));
    if (all <= RANKS_SHOWN)
        el_table_list(&(struct el_table){.columns = late_columns, .out = out}, title,
                      json_incref(el_json_at(document, "late.ranks")));
    say_sentence(el_json_text(document, "late.sentence", ""), out);
    el_text_say("", "", out,
                "late: median, after the mean of the others, when it came last. caused: what all waited for it alone, "
                "in sum. Times are when the host made the call, by each host's clock.");
}
