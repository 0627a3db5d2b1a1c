/* The page's sections as rows. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/base/jvalue.h"
#include "bench/base/table.h"
#include "bench/base/text.h"
#include "bench/options/options.h"
#include "bench/page/html.h"
#include "bench/page/page.h"
#include "bench/plot/plot.h"
#include "bench/report/report.h"
#include "bench/scale/scale.h"

static const struct {
    const char *head, *means;
} meanings[] = {
    /* pictures */
    {"throughput",
     "Samples per second (tokens per second for models over tokens); error bars: 95 % intervals over launches."},
    {"memory",
     "Memory of each device at its peak, MiB, by tag; line: how much more the first device holds than the others."},
    {"imbalance", "What each device holds, and how much more the first one holds."},
    {"imbalance-time", "A step of each device by phase, and how long it waits for others, ms."},
    {"imbalance-bytes", "MiB that each device sends and receives in a step."},
    {"step", "Milliseconds of a step by phase, on the slowest device; only the exposed part of communication counts."},
    {"timeline", "Memory of the first device and of another within one step, with lanes of compute and communication."},
    {"utilization", "Share of the step in which each device's compute stream worked."},
    {"stages", "One step of each stage: forward, backward and bubbles."},
    {"accuracy", "Accuracy on held-out samples against seconds of training."},
    {"explain", "From one step to another, part by part: green is shorter, red is longer, pale may be chance."},
    {"comm", "Bus bandwidth at each size, as nccl-tests defines it, beside that of a plain copy."},
    {"fleet", "Bandwidth from each host to each other one, or between a host's devices."},
    {"ranks", "Each rank's mean step by parts of its training loop; wait: for ranks that come later."},
    {"study", "The rate of each command, with its 95 % interval."},
    {"watch", "Memory and CPU time of each process over time."},
    {"scale", "Speed-up and efficiency against one device, with 95 % intervals."},
    /* trials */
    {"mode", "How training is spread over devices; 'evenload modes' says what each does."},
    {"global batch", "Samples a step over all devices; in brackets devices x local batch."},
    {"samples/s", "Global batch over the mean step; geometric mean over launches."},
    {"tokens/s", "Tokens of the global batch over the mean step; geometric mean over launches."},
    {"95 % interval", "95 % interval of the figure before it, over launches; none with fewer than 5 launches."},
    {"/single", "Throughput over that of single with the same global batch."},
    {"step ms", "Mean step, from its first submission to its last completion; geometric mean over launches."},
    {"p95 ms", "95th percentile of the steps of a launch; geometric mean over launches."},
    {"exposed ms", "Communication of a step during which the slowest device does not compute."},
    {"verdict", "valid, or the reason why the times should not be trusted; the warnings above explain it."},
    /* devices */
    {"peak MiB", "Highest number of bytes allocated at one moment, by the ledger; 1 MiB is 2^20 bytes."},
    {"by tag", "The largest parts of it at that moment, in MiB."},
    {"busy %",
     "Share of the step in which the device's compute stream worked; of a GPU at most, and none where the host "
     "may hold it up."},
    {"sent MiB", "Sent to other devices in a step."},
    /* scaling */
    {"dev.", "Number of devices; * where several share a core or a card."},
    {"speed-up", "Throughput over that of single on one device, then over that of the same mode on one device."},
    {"eff. %", "Speed-up over the number of devices."},
    {"95 %", "95 % interval of the figure before it, over launches."},
    /* evaluation by rank */
    {"answers", "Samples (tokens for models over tokens) that the rank has counted; with --epochs eval=padded some of "
                "them twice."},
    {"right", "Right answers among them."},
    {"accuracy %", "Right answers over answers."},
    {"mean loss", "Mean cross-entropy over the rank's answers."},
    /* epochs */
    {"epochs", "Whole passes over the training samples."},
    {"s per epoch", "Training time of an epoch, evaluation not counted."},
    {"held-out %", "Accuracy on held-out samples after the best epoch."},
    {"after s", "Training time until its end."},
    {"test %", "Accuracy on the test set by that epoch's weights."},
    {"loss", "Mean cross-entropy of a token, nat; on the test set, without one on held-out tokens."},
    {"perplexity", "exp(loss)."},
    {"bits/byte", "loss / ln 2, where tokens are bytes."},
    /* FLOP/s */
    {"GFLOP per step", "Forward and backward of all devices, as the kernels count them."},
    {"6N+12LHQT", "The same by the formula of the PaLM paper's appendix B, for all tokens of a step."},
    {"GFLOP/s per device", "The first over the mean step and the number of devices."},
    {"of GEMM %", "Its share of the rate of matrix products that --machine names."},
    /* where a step goes */
    {"compute", "Kernels run, ms per step."},
    {"+ exposed", "Communication during which the device does not compute."},
    {"+ other", "Loading, copies from the host, making threads."},
    {"+ idle", "None of these: the rest of the device's step."},
    {"| wait", "In a collective, until the last member has come."},
    {"transfer", "In a collective, from then on."},
    {"hidden %", "Share of communication behind compute."},
    {"bubble", "Waiting for the pipeline to fill or to drain."},
    {"CPU of comm.", "Processor time of communication."},
    {"bus GB/s", "Bus bandwidth of the step's all-reduces, as nccl-tests defines it; median over launches."},
    /* communication by axis */
    {"axis",
     "Of the devices that communicate: data (copies), stage or tensor (pieces of the model); copies: between devices "
     "of one process."},
    {"total", "Communication along it, with waiting."},
    {"wait", "The part of it until the last member has come."},
    {"exposed", "The part of the total while the device does not compute."},
    /* what communication costs */
    {"blocks on", "Step of the blocks with communication; these are not the measured steps."},
    {"blocks off", "Step of the blocks without communication."},
    {"on - off", "The cost of communication: the difference of the two."},
    {"contention", "How much longer the device computes while communication runs."},
};

static const char *page_meaning(const char *head)
{
    for (size_t i = 0; i < sizeof meanings / sizeof meanings[0]; i++)
        if (strcmp(meanings[i].head, head) == 0) return meanings[i].means;
    return NULL;
}

static char *page_text(const json_t *of, void (*write)(const json_t *of, FILE *out))
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    if (!out) return NULL;
    write(of, out);
    fclose(out);
    return text;
}

static void write_sentences(const json_t *run, FILE *out)
{
    if (el_printed_kind(run)) return; /* its text has them */
    el_report_sentences(run, out);
    el_report_say_evaluations(json_object_get(run, "trials"), out);
}

static void write_warnings(const json_t *run, FILE *out)
{
    el_report_warnings(json_object_get(run, "trials"), "", out);
}

static void write_failed(const json_t *run, FILE *out)
{
    const json_t *trials = json_object_get(run, "trials");
    char head[2 * EL_CELL_BYTES], mode[64], batch[EL_CELL_BYTES];
    EL_EACH(trial, trials) {
        if (el_report_is_ok(trial)) continue;
        el_table_mode(trial, mode, sizeof mode);
        el_table_batch(trial, NULL, batch);
        snprintf(head, sizeof head, "! %s, batch %s: ", mode, batch);
        el_report_failed(trial, head, "  ", out);
    }
}

static void write_verdict(const json_t *run, FILE *out)
{
    static const char *const verdicts[] = {"valid", "simulated", "unchecked", "suspect", "failed"};
    const json_t *trials = json_object_get(run, "trials");
    size_t n = json_array_size(trials);
    const char *between = ": ";
    const struct el_printed_kind *kind = el_printed_kind(run);
    if (kind) {
        kind->verdict(json_object_get(run, "printed"), out);
        return;
    }
    fprintf(out, "%zu trial%s", n, n == 1 ? "" : "s");
    for (size_t v = 0; v < sizeof verdicts / sizeof verdicts[0]; v++) {
        size_t count = 0;
        EL_EACH(trial, trials) {
            const char *its = el_report_is_ok(trial) ? el_report_verdict(trial) : "failed";
            count += strcmp(its, verdicts[v]) == 0;
        }
        if (count > 0) fprintf(out, "%s%zu %s", between, count, verdicts[v]);
        if (count > 0) between = ", ";
    }
}

static const struct {
    void (*write)(const json_t *run, FILE *out);
    const char *style, *heading;
    char mark;
} parts[EL_OUTCOMES] = {[EL_OUTCOME_VERDICT] = {write_verdict, "verdict", NULL, '\0'},
                        [EL_OUTCOME_SENTENCES] = {write_sentences, "said", NULL, '*'},
                        [EL_OUTCOME_FAILED] = {write_failed, "failed", "Failed", '!'},
                        [EL_OUTCOME_WARNINGS] = {write_warnings, "warned", "Warnings", '!'}};

static enum el_status outcome_put(const json_t *run, enum el_outcome part, bool html, FILE *out)
{
    char *text = page_text(run, parts[part].write);
    const char *style = parts[part].style, *heading = parts[part].heading;
    if (!text) return el_fail(EL_ERR_HOST_MEMORY, "no memory for the page's text");
    if (html && (heading ? *text : !parts[part].mark)) {
        fprintf(out, "<p class=\"%s\">", style);
        el_html_text(out, heading ? heading : text);
        fputs("</p>\n", out);
    }
    if (html && parts[part].mark) el_html_list(out, style, text, parts[part].mark);
    if (!html && parts[part].mark) el_markdown_list(out, text, parts[part].mark);
    if (!html && !parts[part].mark) {
        el_escape_markdown(text, out);
        fputs("\n\n", out);
    }
    free(text);
    return EL_OK;
}

enum { WORDS_MAX = 256 };

/* '...' are parts of words. 0: too many, or an open quote. */
static int split(char *text, char *words[WORDS_MAX])
{
    int n = 0;
    for (char *at = text; *(at += strspn(at, " "));) {
        char *to = at;
        if (n == WORDS_MAX - 1) return 0;
        words[n++] = at;
        for (bool quoted = false; quoted || (*at && *at != ' '); at++) {
            if (*at == '\0') return 0;
            if (*at == '\'')
                quoted = !quoted;
            else if (*at == '\\' && !quoted && at[1])
                *to++ = *++at;
            else
                *to++ = *at;
        }
        bool last = *at == '\0';
        *to = '\0';
        if (last) break;
        at++;
    }
    words[n] = NULL;
    return n;
}

static bool writes(const struct el_options *options)
{
    static const char *const names[] = {"out", "save", "trace", NULL};
    int n = 0;
    while (names[n] && !el_option_given(options, names[n])) n++;
    return names[n] != NULL;
}

static unsigned read_options(char *command, struct el_options *options)
{
    static const unsigned commands[] = {EL_CMD_RUN, EL_CMD_COMPARE, EL_CMD_SCALE, EL_CMD_IMBALANCE};
    char *words[WORDS_MAX];
    int n = split(command, words);
    if (n < 2 || strcmp(words[0], "evenload") != 0) return 0;
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        if (strcmp(words[1], el_command_name(commands[i])) != 0) continue;
        el_options_defaults(commands[i], options);
        bool good = el_options_parse(commands[i], n - 1, words + 1, options) == EL_OK;
        return good && !writes(options) && !options->help ? commands[i] : 0;
    }
    return 0;
}

/* Readers copy it into a shell, so a record's command is parsed as options of `run` and quoted again; otherwise, or if
 * it writes files, the cell says so. */
static void page_command(const json_t *trial, const json_t *context, char *text)
{
    struct el_options *options = malloc(sizeof *options);
    char *command = strdup(el_json_text(trial, "command", ""));
    (void)context;
    unsigned which = options && command ? read_options(command, options) : 0;
    if (!which || el_options_command_line(which, options, text, EL_CELL_BYTES) != EL_OK)
        snprintf(text, EL_CELL_BYTES, "none: what the record names is no command that trains, or too long");
    free(command);
    free(options);
}

enum { PICTURES_MAX = 5, ROOM_FOR_TEXT = 256 << 10 };

struct page {
    const json_t *run, *trials;
    const char *dir;
    size_t room; /* left for pictures */
    FILE *out;
};

static json_t *measured(const json_t *trials)
{
    return el_json_with(trials, el_at_samples_per_s);
}

static json_t *controlled(const json_t *trials)
{
    return el_json_with(trials, "breakdown");
}

static void add_devices(json_t *rows, const json_t *trial, const json_t *devices)
{
    char mode[EL_CELL_BYTES], batch[EL_CELL_BYTES];
    el_table_mode(trial, mode, sizeof mode);
    el_table_batch(trial, NULL, batch);
    EL_EACH(device, devices) {
        json_t *row = json_copy(device);
        el_json_put_text(row, "mode", mode);
        el_json_put_text(row, "batch", batch);
        json_array_append_new(rows, row);
    }
}

static json_t *devices_of(const json_t *trials)
{
    json_t *rows = json_array();
    EL_EACH(trial, trials) {
        json_t *devices = json_object_get(trial, "per_device"), *shared = el_report_shared_cards(devices);
        add_devices(rows, trial, devices);
        add_devices(rows, trial, shared);
        json_decref(shared);
    }
    return rows;
}

static json_t *communicating(const json_t *trials)
{
    json_t *rows = json_array();
    EL_EACH(trial, trials) {
        json_t *devices = el_report_communicates(trial) ? el_report_comm_rows(trial) : NULL;
        add_devices(rows, trial, devices);
        json_decref(devices);
    }
    return rows;
}

static json_t *all(const json_t *trials)
{
    return json_incref((json_t *)(uintptr_t)trials);
}

static json_t *scaled(const struct page *page)
{
    json_t *document, *rows = NULL;
    double low, high;
    el_json_range(page->trials, "devices", &low, &high);
    if (low < high && el_scale_document(page->run, page->dir, &document) == EL_OK) {
        rows = json_incref(json_object_get(document, "rows"));
        EL_EACH(row, json_object_get(document, "predicted")) {
            el_json_put(row, "mode", json_sprintf("%s, predicted", el_json_text(row, "mode", "?")));
            json_array_append(rows, row);
        }
        json_decref(document);
    }
    return rows;
}

static const struct el_column of_trial[] =
    EL_COLUMNS(EL_TEXT("mode", -9, "mode"), EL_TEXT("global batch", -14, "batch"));
static const struct el_column commands[] = EL_COLUMNS(EL_MODE_AND_BATCH, EL_SHOWN("command", -60, page_command));

static const struct section {
    const char *id, *title, *lead;
    const char *pictures[PICTURES_MAX];
    json_t *(*rows)(const json_t *trials); /* NULL: scaling */
    const struct el_column *columns[3];
} sections[] = {
    {"scaling", "Scaling", "Speed-up and efficiency at each number of devices.", EL_LIST("scale"), NULL,
     EL_LIST(el_scale_columns)},
    {"throughput", "Throughput", "A row for each trial.", EL_LIST("throughput"), measured,
     EL_LIST(el_report_trial_columns)},
    {"arithmetic", "FLOP/s", "FLOP/s of each device, and the share of this machine's rate of matrix products.",
     EL_LIST(NULL), el_report_arithmetic_rows, EL_LIST(el_report_arithmetic_columns)},
    {"memory", "Memory", "The peak of each device, and the tags that make it up at that moment.",
     EL_LIST("memory", "imbalance", "imbalance-bytes"), devices_of, EL_LIST(of_trial, el_report_device_columns)},
    {"time", "Where a step goes",
     "Milliseconds of each device in the measured steps. *: the slowest, whose exposed time is the trial's.",
     EL_LIST("step", "imbalance-time", "timeline", "utilization", "stages"), communicating,
     EL_LIST(of_trial, el_report_comm_columns)},
    {"axes", "Communication by axis", "Milliseconds of the slowest device in the measured steps.", EL_LIST(NULL),
     el_report_axis_rows, EL_LIST(el_report_axis_columns)},
    {"communication", "What communication costs",
     "Milliseconds of the slowest device in A/B blocks of further steps, with communication on and off in turn.",
     EL_LIST(NULL), controlled, EL_LIST(el_report_step_columns)},
    {"accuracy", "Accuracy", "Accuracy against seconds of training.", EL_LIST("accuracy"), el_report_epoch_rows,
     EL_LIST(el_report_epoch_columns)},
    {"evaluation", "Evaluation by rank", "Counts of each rank, with the weights of the best epoch.", EL_LIST(NULL),
     el_report_rank_rows, EL_LIST(el_report_rank_columns)},
    {"commands", "Commands", "Each trial again, alone. Made from the options that the record names.", EL_LIST(NULL),
     all, EL_LIST(commands)}};
enum { N_SECTIONS = sizeof sections / sizeof sections[0] };

static bool has_picture(const struct page *page, const char *name, char path[EL_PATH_BYTES + 64])
{
    snprintf(path, EL_PATH_BYTES + 64, "%s/plots/%s.svg", page->dir, name);
    return access(path, R_OK) == 0;
}

static void put_picture(struct page *page, const char *name)
{
    char path[EL_PATH_BYTES + 64];
    if (!has_picture(page, name, path)) return;
    fputs("<figure>\n", page->out);
    const char *means = page_meaning(name);
    const char *why = el_html_picture(page->out, path, means ? means : name, &page->room);
    fputs("<figcaption>", page->out);
    if (why) fprintf(page->out, "%s ", why);
    if (means) el_html_text(page->out, means);
    fputs("</figcaption>\n</figure>\n", page->out);
}

/* For readers without a pointer. */
static void put_meanings(FILE *out, const struct el_column *const *lists)
{
    fputs("<details><summary>What the columns mean</summary>\n<dl>\n", out);
    for (size_t l = 0; lists[l]; l++)
        for (const struct el_column *column = lists[l]; column->head; column++) {
            const char *means = page_meaning(column->head);
            if (!means) continue;
            fputs("<dt>", out);
            el_html_text(out, column->head);
            fputs("</dt><dd>", out);
            el_html_text(out, means);
            fputs("</dd>\n", out);
        }
    fputs("</dl></details>\n", out);
}

static const struct el_column *fitting(const struct el_column *columns, const json_t *rows)
{
    if (!el_report_of_tokens(rows)) return columns;
    return columns == el_report_trial_columns   ? el_report_token_columns
           : columns == el_report_epoch_columns ? el_report_token_epoch_columns
           : columns == el_scale_columns        ? el_scale_token_columns
                                                : columns;
}

static void put_section(struct page *page, const struct section *section)
{
    json_t *rows = section->rows ? section->rows(page->trials) : scaled(page);
    const struct el_column *const columns[] = {fitting(section->columns[0], rows), section->columns[1], NULL};
    char path[EL_PATH_BYTES + 64];
    bool table = json_array_size(rows) > 0, any = table;
    for (int i = 0; i < PICTURES_MAX && section->pictures[i]; i++) any |= has_picture(page, section->pictures[i], path);
    if (any) {
        fprintf(page->out, "<section id=\"%s\">\n<h2>%s</h2>\n<p>%s</p>\n", section->id, section->title, section->lead);
        for (int i = 0; i < PICTURES_MAX && section->pictures[i]; i++) put_picture(page, section->pictures[i]);
        if (table) el_html_table(page->out, columns, rows, page->trials, page_meaning);
        if (table) put_meanings(page->out, columns);
        fputs("</section>\n", page->out);
    }
    json_decref(rows);
}

static void put_printed(struct page *page, const struct el_printed_kind *kind)
{
    char *text = page_text(json_object_get(page->run, "printed"), kind->print), *rest = text, *line;
    fprintf(page->out, "<section id=\"printed\">\n<h2>%s</h2>\n", kind->heading);
    for (int i = 0; kind->figures[i]; i++) put_picture(page, kind->figures[i]->name);
    fputs("<pre>", page->out);
    while ((line = strsep(&rest, "\n")) != NULL) {
        el_html_text(page->out, line);
        fputc('\n', page->out);
    }
    fputs("</pre>\n</section>\n", page->out);
    free(text);
}

/* "numa: name 0, cores 0-1; interfaces: ..." */
static void put_value(FILE *out, const json_t *value)
{
    const char *between = "";
    if (json_is_string(value))
        el_html_text(out, json_string_value(value));
    else if (json_is_integer(value))
        fprintf(out, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    else if (json_is_real(value))
        fprintf(out, "%.4g", json_real_value(value));
    else if (json_is_boolean(value))
        fputs(json_is_true(value) ? "yes" : "no", out);
    EL_EACH(item, value) {
        fputs(between, out);
        put_value(out, item);
        between = json_is_object(item) ? "; " : ", ";
    }
    EL_EACH_KEY(key, item, value) {
        bool list = json_is_array(item) && json_array_size(item);
        if (json_is_null(item) || (json_is_array(item) && !list) || !strcmp(key, "reason")) continue;
        fputs(between, out);
        el_html_text(out, key);
        fputs(list ? ": " : " ", out);
        put_value(out, item);
        between = list ? "; " : ", ";
    }
}

static void put_environment(FILE *out, const json_t *environment)
{
    fputs("<section id=\"environment\">\n<h2>Environment</h2>\n<div class=\"wide\"><table>\n<tbody>\n", out);
    EL_EACH_KEY(key, value, environment) {
        bool empty =
            json_is_string(value) ? !*json_string_value(value) : json_is_array(value) && !json_array_size(value);
        if (json_is_null(value) || empty) continue;
        fputs("<tr><th scope=\"row\" class=\"left\">", out);
        for (const char *at = key; *at; at++) el_html_text(out, *at == '_' ? " " : (char[]){*at, 0});
        fputs("</th><td class=\"left\">", out);
        put_value(out, value);
        fputs("</td></tr>\n", out);
    }
    fputs("</tbody></table></div>\n</section>\n", out);
}

static void put_head(struct page *page, const char *title)
{
    fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
          "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>evenload: ",
          page->out);
    el_html_text(page->out, title);
    fputs("</title>\n<style>\n", page->out);
}

static enum el_status put_body(struct page *page, const char *title)
{
    static const char *const when[] = {"environment.time_utc", "environment.hostname", "environment.commit"};
    fputs("</style>\n</head>\n<body>\n<main>\n<h1>", page->out);
    el_html_text(page->out, title);
    fputs("</h1>\n<p class=\"when\">", page->out);
    const char *between = "";
    for (int i = 0; i < 3; i++) {
        const char *text = el_json_text(page->run, when[i], NULL);
        if (!text) continue;
        fprintf(page->out, "%s%s", between, i == 2 ? "evenload " : "");
        el_html_text(page->out, text);
        between = ", ";
    }
    fputs("</p>\n", page->out);
    for (int i = 0; i < EL_OUTCOMES; i++) EL_TRY(outcome_put(page->run, (enum el_outcome)i, true, page->out));
    const struct el_printed_kind *kind = el_printed_kind(page->run);
    for (int i = 0; i < N_SECTIONS && !kind; i++) put_section(page, &sections[i]);
    if (kind) put_printed(page, kind);
    put_environment(page->out, json_object_get(page->run, "environment"));
    fputs("<footer>", page->out);
    if (!kind || kind->figures[0]) {
        fputs("The plots again: <code>evenload plot ", page->out);
        el_html_text(page->out, page->dir);
        fputs("</code>. ", page->out);
    }
    if (json_is_string(json_object_get(page->run, "command")) && !kind) {
        char command[EL_CELL_BYTES];
        page_command(page->run, NULL, command);
        fputs("All of it again: <code>", page->out);
        el_html_text(page->out, command);
        fputs("</code>. ", page->out);
    }
    fprintf(page->out, "The figures lie beside this page, in %s.</footer>\n</main>\n<script>\n",
            kind ? kind->file : "results.json, trials.csv and devices.csv");
    return EL_OK;
}

static void page_title(const struct page *page, char title[EL_TITLE_BYTES])
{
    const struct el_printed_kind *kind = el_printed_kind(page->run);
    if (kind)
        kind->title(json_object_get(page->run, "printed"), title);
    else
        el_data_title(page->trials, title);
}

static enum el_status put_page(struct page *page, const char *scripts)
{
    char path[EL_PATH_BYTES + 32], title[EL_TITLE_BYTES];
    page_title(page, title);
    put_head(page, title);
    snprintf(path, sizeof path, "%s/report.css", scripts);
    EL_TRY(el_html_file(page->out, path));
    EL_TRY(put_body(page, title));
    snprintf(path, sizeof path, "%s/report.js", scripts);
    EL_TRY(el_html_file(page->out, path));
    fputs("</script>\n</body>\n</html>\n", page->out);
    return EL_OK;
}

enum el_status el_page_html(const json_t *run, const char *dir, FILE *out)
{
    struct page page = {.run = run,
                        .trials = json_object_get(run, "trials"),
                        .dir = dir,
                        .room = EL_PAGE_BYTES_MAX - ROOM_FOR_TEXT,
                        .out = out};
    char scripts[EL_PATH_BYTES];
    if (!el_plot_scripts(scripts))
        return el_fail(EL_ERR_ABSENT, "the folder plots/ with the page's style was not found beside the program");
    return put_page(&page, scripts);
}

enum el_status el_page_markdown(const json_t *run, FILE *out)
{
    const struct page page = {.run = run, .trials = json_object_get(run, "trials")};
    const struct el_printed_kind *kind = el_printed_kind(run);
    char title[EL_TITLE_BYTES];
    page_title(&page, title);
    fputs("### evenload: ", out);
    el_escape_markdown(title, out);
    fputs("\n\n", out);
    EL_TRY(outcome_put(run, EL_OUTCOME_VERDICT, false, out));
    EL_TRY(outcome_put(run, EL_OUTCOME_SENTENCES, false, out));
    char *text = kind ? page_text(json_object_get(run, "printed"), kind->print) : NULL;
    json_t *rows = measured(page.trials);
    if (text)
        el_markdown_block(out, text);
    else
        el_markdown_table(out, fitting(el_report_trial_columns, rows), rows, page.trials);
    free(text);
    json_decref(rows);
    fputc('\n', out);
    EL_TRY(outcome_put(run, EL_OUTCOME_FAILED, false, out));
    return outcome_put(run, EL_OUTCOME_WARNINGS, false, out);
}
