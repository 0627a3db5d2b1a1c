/* Short names for rows of tables. */
#include "bench/report/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "runtime/base/utf8.h"
#include "runtime/modes/dp/fix.h"
#include "runtime/train/train.h"

/* " -replicas"; a fix that another one implies is not listed. */
static void append_fixes(const char *fixes, char *text, size_t bytes)
{
    const struct el_dp_fix_row *rows = el_dp_fix_rows();
    unsigned set = 0, needed = 0;
    bool all = !strcmp(fixes, "all");
    for (int i = 0; i < EL_DP_FIXES; i++)
        if (all || strstr(fixes, rows[i].name)) set |= rows[i].fix;
    for (int i = 0; i < EL_DP_FIXES; i++)
        if (set & rows[i].fix) needed |= el_dp_fix_close(rows[i].fix) & ~rows[i].fix;
    if (all) el_text_append(text, bytes, " -all");
    for (int i = 0; i < EL_DP_FIXES && !all; i++)
        if (set & ~needed & rows[i].fix) el_text_append(text, bytes, " -%s", rows[i].name);
}

/* " 25M", " 1/5M"; nothing by default. */
static void append_buckets(const json_t *trial, char *text, size_t bytes)
{
    const double mib = 1 << 20;
    double cap_bytes = el_json_number(trial, "config.bucket_cap_bytes"),
           first_bytes = el_json_number(trial, "config.bucket_first_bytes");
    bool usual = isnan(first_bytes) || first_bytes == EL_BUCKET_FIRST_BYTES;
    if (isnan(cap_bytes) || (cap_bytes == EL_BUCKET_CAP_BYTES && usual)) return;
    el_text_append(text, bytes, " ");
    if (!isnan(first_bytes) && first_bytes != cap_bytes) el_text_append(text, bytes, "%.4g/", first_bytes / mib);
    el_text_append(text, bytes, "%.4gM", cap_bytes / mib);
}

static void append_labels(const json_t *trial, char *text, size_t bytes)
{
    const struct el_mode_option *const *rows = el_mode_options();
    for (; *rows; rows++) {
        char key[EL_MODE_TEXT_BYTES];
        const json_t *config = json_object_get(trial, "config"),
                     *value = json_object_get(config, el_mode_option_key(*rows, key));
        bool usual = !json_is_string(value) || !strcmp(json_string_value(value), (*rows)->initial);
        if ((*rows)->label && !usual)
            el_text_append(text, bytes, " %s", *(*rows)->label ? (*rows)->label : json_string_value(value));
    }
}

void el_table_mode(const json_t *trial, char *text, size_t bytes)
{
    const char *mode = el_json_text(trial, "mode", "?");
    snprintf(text, bytes, "%s", mode);
    append_labels(trial, text, bytes);
    bool copies = !el_mode_has_pieces(mode) || el_json_number(trial, "config.ranks") > 1;
    if (copies && el_mode_option_of(mode, "bucket-mb")) append_buckets(trial, text, bytes);
    const char *shares = el_json_text(trial, "config.shares", "");
    if (*shares)
        el_text_append(text, bytes, " %s%s", shares,
                       el_json_is(trial, "config.share_weights", "equal") ? " equal" : "");
    const char *fixes = el_json_text(trial, "config.dp_fix", "none");
    if (strcmp(fixes, "none"))
        append_fixes(fixes, text, bytes);
    else if (el_json_is(trial, "config.loss_in", "replica"))
        el_text_append(text, bytes, " loss");
    double beside = el_json_number(trial, "config.beside");
    if (beside > 0) el_text_append(text, bytes, " +%.0f", beside);
    const char *chosen = el_json_text(trial, "chosen", "");
    if (*chosen) el_text_append(text, bytes, " %s", chosen);
}

void el_table_batch(const json_t *trial, const json_t *context, char *text)
{
    const json_t *shares = json_object_get(trial, "batch_per_device");
    size_t n = json_array_size(shares), n_stages;
    double all = el_json_number(trial, "global_batch"), sum = 0, low = INFINITY, high = 0;
    double first = json_number_value(json_array_get(shares, 0)), end = json_number_value(json_array_get(shares, n - 1));
    (void)context;
    snprintf(text, EL_CELL_BYTES, "%.0f", all);
    if (n < 2) return;
    for (size_t i = 0; i < n; i++) {
        double share = json_number_value(json_array_get(shares, i));
        sum += share, low = fmin(low, share), high = fmax(high, share);
    }
    const struct el_mode_info *mode = el_mode_find(el_json_text(trial, "mode", "?"));
    bool cut = mode && el_mode_has_pieces(mode->name);
    n_stages = cut && sum > all ? (size_t)(sum / all) : 1;
    if (cut && first == all)
        el_text_append(text, EL_CELL_BYTES, el_mode_cuts(mode->name) ? " (%zu stages)" : " (%zu pieces)", n);
    else if (low == high)
        el_text_append(text, EL_CELL_BYTES, " (%zu x %.0f)", n / n_stages, first);
    else
        el_text_append(text, EL_CELL_BYTES, " (%.0f..%.0f)", first == end ? low : first, first == end ? high : end);
}

static const char *without_folders(const char *at, size_t length)
{
    const char *begin = at;
    for (size_t i = 0; *at != '-' && i + 1 < length; i++)
        if (at[i] == '/') begin = at + i + 1;
    return begin;
}

/* "torchrun" for "/usr/bin/python3 /usr/bin/torchrun" */
static const char *without_python(const char *command)
{
    size_t length = strcspn(command, " ");
    const char *next = command + length + strspn(command + length, " ");
    size_t next_length = strcspn(next, " ");
    bool python = strncmp(without_folders(command, length), "python", strlen("python")) == 0;
    const char *script = without_folders(next, next_length);
    bool named = script != next && memchr(script, '.', (size_t)(next + next_length - script)) == NULL;
    return python && named ? next : command;
}

void el_table_command(const char *command, char *text, size_t bytes)
{
    size_t used = 0;
    text[0] = '\0';
    for (const char *at = without_python(command + strspn(command, " ")); *at && used + 1 < bytes;) {
        size_t length = strcspn(at, " ");
        const char *word = without_folders(at, length);
        snprintf(text + used, bytes - used, "%s%.*s", used > 0 ? " " : "", (int)(at + length - word), word);
        used = strlen(text);
        at += length;
        at += strspn(at, " ");
    }
    el_utf8_printable(text);
}
