/* Compares bits across numbers of processes, and prints the table. */
#include <math.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/base/table.h"
#include "bench/base/text.h"
#include "bench/verify/verify.h"

enum { FAILURES_SHOWN = 10 };

size_t el_verify_count(const json_t *cells, const char *status)
{
    size_t n = 0;
    EL_EACH(cell, cells) n += el_json_is(cell, "status", status);
    return n;
}

/* NCCL may sum in another order than one process, so on GPUs only the reference decides. */
void el_verify_judge(json_t *cells)
{
    json_t *one = json_object();
    EL_EACH(cell, cells) {
        char key[256];
        snprintf(key, sizeof key, "%s %s %s %s %s %d", el_json_text(cell, "backend", ""),
                 el_json_text(cell, "mode", ""), el_json_text(cell, "variant", ""), el_json_text(cell, "model", ""),
                 el_json_text(cell, "kind", ""), (int)el_json_whole(cell, "devices"));
        const json_t *other = json_object_get(one, key);
        if (el_json_whole(cell, "procs") == 1) json_object_set(one, key, cell);
        if (!other || el_json_is(cell, "backend", "cuda") || !json_object_get(other, "bits") ||
            el_json_whole(cell, "shares") != el_json_whole(other, "shares"))
            continue;
        bool same = el_json_is(cell, "bits", el_json_text(other, "bits", ""));
        json_object_set_new(cell, "same_bits", json_boolean(same));
        if (same || !el_json_is(cell, "status", "ok")) continue;
        el_json_put_text(cell, "status", "failed");
        el_json_put_text(cell, "reason", "its numbers have other bits than in one process");
    }
    json_decref(one);
}

static void print_failure(const json_t *cell, FILE *out)
{
    const char *variant = el_json_text(cell, "variant", "");
    if (!json_object_get(cell, "mode")) { /* a job's own */
        el_text_wrap(el_json_text(cell, "reason", "?"), "FAILED  ", "        ", out);
        return;
    }
    int procs = (int)el_json_whole(cell, "procs"), devices = (int)el_json_whole(cell, "devices");
    el_text_say("FAILED  ", "        ", out, "%s %s, %s%s%s, %d %s device%s, %d process%s: %s",
                el_json_text(cell, "mode", "?"), el_json_text(cell, "model", "?"), el_json_text(cell, "kind", "?"),
                *variant ? ", " : "", variant, devices, el_json_text(cell, "backend", "?"), devices == 1 ? "" : "s",
                procs, procs == 1 ? "" : "es", el_json_text(cell, "reason", "?"));
}

static const struct el_column columns[] = EL_COLUMNS(
    EL_TEXT("mode", -10, "mode"), EL_TEXT("model", -9, "model"), EL_TEXT("devices", -8, "devices"),
    EL_TEXT("sgd", 9, "sgd"), EL_TEXT("momentum", 9, "momentum"), EL_TEXT("adam", 9, "adam"),
    EL_TEXT("f32: loss", 11, "f32"), EL_TEXT("gradient", 9, "gradient"), EL_TEXT("processes", 11, "processes"));

static void put_worst(json_t *row, const char *column, const json_t *cell, const char *path)
{
    char text[32], key[32];
    double value = el_json_number(cell, path);
    snprintf(key, sizeof key, "%s worst", column);
    value = fmax(value, el_json_number(row, key)); /* fmax ignores NAN */
    el_json_put_real(row, key, value);
    snprintf(text, sizeof text, value > 0 ? "%.1e" : "0", value);
    if (el_json_is(row, column, "FAILED") || el_json_is(cell, "status", "failed")) strcpy(text, "FAILED");
    el_json_put_text(row, column, text);
}

static void add_cell(json_t *row, const json_t *cell)
{
    const json_t *same = json_object_get(cell, "same_bits");
    int64_t devices = el_json_whole(cell, "devices"), all = el_json_whole(row, "bits of devices");
    if (el_json_is(cell, "status", "unserved")) {
        el_json_put_text(row, "reason", el_json_text(cell, "reason", ""));
        return;
    }
    char text[32] = "";
    if (!*el_json_text(cell, "variant", "")) json_object_set_new(row, "as it is", json_true());
    all |= 1 << devices;
    for (int n = 1; n <= EL_VERIFY_MOST; n++)
        if (all >> n & 1) el_text_append(text, sizeof text, "%s%d", *text ? "," : "", n);
    json_object_set_new(row, "bits of devices", json_integer(all));
    el_json_put_text(row, "devices", text);
    put_worst(row, el_json_text(cell, "kind", ""), cell, "difference");
    if (el_json_is(cell, "kind", "f32")) put_worst(row, "gradient", cell, "gradient_difference");
    if (el_json_whole(cell, "procs") == 1 || el_json_is(row, "processes", "DIFFER")) return;
    if (same) el_json_put_text(row, "processes", json_is_true(same) ? "same bits" : "DIFFER");
    if (el_json_is(row, "processes", "-")) el_json_put_text(row, "processes", "compared");
}

static json_t *make_row(const json_t *cells, const char *backend, const char *mode, const char *model)
{
    json_t *row = NULL;
    EL_EACH(cell, cells) {
        if (!el_json_is(cell, "backend", backend) || !el_json_is(cell, "mode", mode) ||
            !el_json_is(cell, "model", model))
            continue;
        if (!row) {
            row = el_json_of(EL_KEY("mode", mode), EL_KEY("model", model), EL_KEY("bits of devices", 0));
            for (const struct el_column *c = columns + 3; c->head; c++) el_json_put_text(row, c->path, "-");
        }
        add_cell(row, cell);
    }
    return row;
}

static void print_backend(const json_t *cells, const char *backend, FILE *out)
{
    const struct el_table table = {.columns = columns, .out = out};
    bool begun = false;
    for (const struct el_mode_info *mode = el_mode_list(); mode->name; mode++) {
        for (const struct el_model_info *model = el_model_list(); model->name; model++) {
            char first[32];
            json_t *row = make_row(cells, backend, mode->name, model->name);
            if (row && !begun) {
                el_text_line(out, "On %s devices", backend);
                el_table_heads(&table, EL_TABLE_BOLD);
                begun = true;
            }
            if (row && json_object_get(row, "devices")) el_table_row(&table, EL_TABLE_PLAIN, row);
            snprintf(first, sizeof first, "%-10s%-9s", mode->name, model->name);
            if (row && !json_object_get(row, "as it is"))
                el_text_say(first, "                   ", out, "cannot: %s", el_json_text(row, "reason", "?"));
            json_decref(row);
        }
    }
    if (begun) fputc('\n', out);
}

void el_verify_print(const json_t *document, FILE *out)
{
    const json_t *cells = json_object_get(document, "cells"), *pairs = json_object_get(document, "pairs");
    const json_t *disturbances = json_object_get(document, "disturbances");
    if (disturbances) {
        el_disturbances_print(disturbances, out);
        return;
    }
    size_t shown = 0, failed = el_verify_count(cells, "failed");
    EL_EACH(cell, cells)
        if (el_json_is(cell, "status", "failed") && shown++ < FAILURES_SHOWN) print_failure(cell, out);
    if (failed > FAILURES_SHOWN) el_text_line(out, "        and %zu more, in verify.json", failed - FAILURES_SHOWN);
    if (failed) fputc('\n', out);
    if (json_is_object(pairs)) {
        el_text_say("", "", out,
                    "%.0f options have %.0f values, which make %.0f pairs: %.0f of them meet in a cell, and %.0f are "
                    "refused%s.",
                    el_json_number(pairs, "options"), el_json_number(pairs, "values"), el_json_number(pairs, "pairs"),
                    el_json_number(pairs, "met"), el_json_number(pairs, "refused"),
                    el_json_number(pairs, "open") > 0 ? "; the rest was left out (--quick)" : "");
        fputc('\n', out);
        return;
    }
    el_text_say(
        "", "", out,
        "The largest differences from the right numbers: all losses in f64, by optimizer; the first step's loss and "
        "gradients in f32. 'processes': each rank or stage also ran in a process of its own, with the same bits as "
        "threads of one process, or ('compared') within the same limits.");
    fputc('\n', out);
    print_backend(cells, "cpu", out);
    print_backend(cells, "cuda", out);
}

void el_verify_say(const json_t *document, FILE *out)
{
    double failed = el_json_number(document, "failed"), checks = el_json_number(document, "checks");
    double seconds = el_json_number(document, "seconds");
    if (json_object_get(document, "disturbances"))
        fprintf(out, "%.0f of %.0f disturbances%s found, in %.0f s", checks - failed, checks,
                json_is_true(json_object_get(document, "interrupted")) ? " injected before the interruption" : "",
                seconds);
    else if (failed > 0)
        fprintf(out, "%.0f of %.0f checks failed, in %.0f s: figures of the modes above must not be believed", failed,
                checks, seconds);
    else
        fprintf(out, "All %.0f checks%s passed, in %.0f s", checks,
                json_is_true(json_object_get(document, "interrupted")) ? " that were made before the interruption" : "",
                seconds);
}

bool el_verify_is(const json_t *document)
{
    return json_is_array(json_object_get(document, "cells")) && json_is_integer(json_object_get(document, "checks"));
}
