/* Form: src/util.cu of nccl-tests. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/foreign/foreign.h"
#include "runtime/base/files.h"

enum { WORDS_MAX = 32, LINE_BYTES = 512, RANKS_MAX = 1 << 20 };

/* Named devices of the first one's group, and their distance in rank: JSON names only each process's first device. */
struct named {
    int n, first_group, first_rank;
    int64_t in_group, apart, of_a_process;
    bool again; /* the first one appeared again */
};

static void add_device(struct el_foreign *foreign, struct named *named, int rank, int group, const char *name,
                       const char *host, const char *info)
{
    named->again |= named->n > 0 && rank == named->first_rank;
    if (named->n == 0) named->first_group = group, named->first_rank = rank, named->apart = named->of_a_process;
    if (named->n == 1) named->apart = (int64_t)rank - named->first_rank;
    named->n++;
    named->in_group += group == named->first_group;
    if (foreign->ranks) return; /* a further file's */
    json_array_append_new(foreign->devices, el_json_string(name));
    if (!el_json_has(foreign->names, info)) json_array_append_new(foreign->names, el_json_string(info));
    json_object_set_new(foreign->hosts, host, json_true());
}

static enum el_status set_ranks(struct el_foreign *foreign, const struct named *named, const char *name)
{
    int64_t ranks = named->in_group * (named->apart > 0 ? named->apart : 1);
    if (named->n == 0) return EL_OK;
    if (named->again)
        return el_fail(EL_ERR_INVALID,
                       "%s: rank %d is in it twice: it is of several jobs of one process each; under mpirun "
                       "nccl-tests needs MPI=1 when it is built",
                       el_path_tail(name), named->first_rank);
    if (ranks < 1 || ranks > RANKS_MAX)
        return el_fail(EL_ERR_INVALID, "%s: it is of %lld ranks", el_path_tail(name), (long long)ranks);
    if (foreign->ranks && foreign->ranks != ranks)
        return el_fail(EL_ERR_INVALID, "%s: it is of %lld ranks, what was read before of %d: read them apart",
                       el_path_tail(name), (long long)ranks, foreign->ranks);
    foreign->ranks = (int)ranks;
    return EL_OK;
}

static enum el_status add_place(struct el_foreign *foreign, struct el_foreign_row *row, bool in_place, double us,
                                double ratio, double wrong, json_t *samples)
{
    row->in_place = in_place;
    row->bus_ratio = ratio;
    row->wrong = wrong;
    row->samples = samples ? samples : json_pack("[[f]]", us > 0 ? us : 0);
    if (us > 0 && isfinite(us)) return el_foreign_add(foreign, row);
    json_decref(row->samples);
    return EL_OK;
}

static enum el_status check_row(const struct el_foreign_row *row, const char *name)
{
    if (!*row->operation)
        return el_fail(
            EL_ERR_INVALID,
            "%s: it does not name its operation, as versions before June 2025 do not: name the file after it, "
            "all_reduce.txt",
            el_path_tail(name));
    if (row->bytes >= 0 && row->bytes < 1e18 && row->count >= 0 && row->count < 1e18) return EL_OK;
    return el_fail(EL_ERR_INVALID, "%s: a row of %g bytes", el_path_tail(name), row->bytes);
}

struct text_reader {
    struct el_foreign *foreign;
    const char *name;
    struct named named;
    char columns[WORDS_MAX][EL_FOREIGN_WORD];
    int n_columns, n_rows, n_rows_before; /* before: of earlier runs */
    int64_t sizes;                        /* of a run, as its header says; 0: it does not */
    const char *operation;
    double bus_ratio; /* busbw / algbw of the last row */
    bool told;        /* the operation, by the file itself */
    bool ended;       /* the lines that end a run are there */
};

static int split(char *line, char *words[WORDS_MAX])
{
    int n = 0;
    char *rest = NULL;
    for (char *word = strtok_r(line, " \t\r", &rest); word && n < WORDS_MAX; word = strtok_r(NULL, " \t\r", &rest))
        words[n++] = word;
    return n;
}

static bool is_content(const char *at)
{
    at += strspn(at, " \t");
    return *at == '#' || isdigit((unsigned char)*at);
}

/* What launchers and collectors of logs put before a line: "[1,0]<stdout>:" (mpirun), "0:" (srun), "node0: " (pdsh),
 * "[rank0]: " (torchrun), "web-1  | " (docker compose), "2025-03-04T05:06:07.1Z " (kubectl, GitHub Actions). */
static const char *past_label(const char *line)
{
    for (bool again = true; again;) {
        const char *tag = *line == '[' ? strchr(line, ']') : NULL, *colon = strchr(line, ':'),
                   *bar = strstr(line, " | ");
        const size_t word = strcspn(line, " \t"), digits = strspn(line, "0123456789");
        const char *from = line;
        if (tag && tag[1] == '<') tag = strstr(tag, ">:");
        if (tag)
            line = tag + 1 + (tag[1] == ':');
        else if (digits == 4 && line[4] == '-' && line[word] && memchr(line, 'T', word))
            line += word + 1;
        else if (colon && (size_t)(colon - line) + 1 == word && is_content(colon + 1))
            line = colon + 1;
        else if (digits && line[digits] == ':')
            line += digits + 1;
        else if (bar && bar - line < 64 && !isdigit((unsigned char)*line) && is_content(bar + 3))
            line = bar + 3;
        again = line != from;
    }
    return line;
}

/* "nThread 1 nGpus 8 minBytes 8 maxBytes 128 step: 2(factor) ...": the number of sizes; 0: the header does not say. */
static int64_t count_sizes(const char *line)
{
    double least, most, step;
    char how[16] = "";
    const char *at = strstr(line, "minBytes");
    int64_t n = 0;
    if (!at || sscanf(at, "minBytes %lf maxBytes %lf step: %lf(%15[a-z])", &least, &most, &step, how) != 4) return 0;
    const bool factor = !strcmp(how, "factor");
    if (!(step > factor) || !(least >= 0)) return least == most;
    double size = least;
    while (size <= most && n < EL_FOREIGN_POINTS_MAX) {
        size = factor ? size * step : size + step;
        n++;
    }
    return n;
}

/* Each table of a run has all sizes, or a multiple of them. */
static void end_table(struct text_reader *r)
{
    const int64_t rows = r->n_rows - r->n_rows_before;
    if (r->sizes && rows) r->foreign->lost_rows += (r->sizes - rows % r->sizes) % r->sizes;
    r->n_rows_before = r->n_rows;
}

static enum el_status take_comment(struct text_reader *r, char *line)
{
    static const char starts[] = "Collective test starting:";
    char *words[WORDS_MAX], host[128], card[32], *at = strstr(line, starts);
    int rank, group = 0, device, used = 0;
    if (at) r->operation = el_foreign_operation(at + sizeof starts - 1), r->told = true;
    at = strstr(line, "Rank ");
    bool grouped = at && sscanf(at, "Rank %d Group %d Pid %*d on %127s device %d [%*[^]]] %n", &rank, &group, host,
                                &device, &used) == 4;
    if (at && !grouped) used = 0;
    if (grouped ||
        (at && sscanf(at, "Rank %d Pid %*d on %127s device %d [%*[^]]] %n", &rank, host, &device, &used) == 3)) {
        snprintf(card, sizeof card, "cuda:%d", device);
        add_device(r->foreign, &r->named, rank, group, card, host, used ? at + used : "");
        return EL_OK;
    }
    r->ended |= strstr(line, "Avg bus bandwidth") || strstr(line, "Out of bounds");
    at = strstr(line, "Avg bus bandwidth");
    if (at && strchr(at, ':')) r->foreign->stated_busbw = atof(strchr(at, ':') + 1), r->foreign->n_stated++;
    const int64_t sizes = count_sizes(line);
    int n = split(line + 1, words);
    if (sizes) {
        end_table(r);
        r->sizes = sizes;
    }
    if (n > 1 && !strcmp(words[0], "nThread") && r->named.n) { /* a further run */
        EL_TRY(set_ranks(r->foreign, &r->named, r->name));
        r->named = (struct named){.n = 0};
    }
    if (n < 6 || strcmp(words[0], "size") || strcmp(words[1], "count")) return EL_OK;
    for (r->n_columns = 0; r->n_columns < n; r->n_columns++)
        snprintf(r->columns[r->n_columns], EL_FOREIGN_WORD, "%.31s", words[r->n_columns]);
    return EL_OK;
}

/* A place's columns: from its time to the next one's. */
static enum el_status take_place(struct text_reader *r, struct el_foreign_row *row, char **words, int at, bool in_place)
{
    double us = atof(words[at]), algbw = NAN, busbw = NAN, wrong = NAN;
    for (int i = at + 1; i < r->n_columns && !strstr(r->columns[i], "time"); i++) {
        bool figure = isdigit((unsigned char)words[i][0]);
        if (!strcmp(r->columns[i], "algbw")) algbw = atof(words[i]);
        if (!strcmp(r->columns[i], "busbw")) busbw = atof(words[i]);
        if (!strcmp(r->columns[i], "#wrong") && figure) wrong = atof(words[i]);
    }
    if (us > 0 && algbw > 0) r->bus_ratio = busbw / algbw;
    return add_place(r->foreign, row, in_place, us, busbw / algbw, wrong, NULL);
}

static enum el_status take_row(struct text_reader *r, char *line)
{
    char *words[WORDS_MAX];
    struct el_foreign_row row = {.root = -1, .redop = "none", .type = "?"};
    const bool cut = r->foreign->cut;
    int n = split(line, words), place = 0, places = 0, first = 0;
    for (int i = 0; i < r->n_columns; i++)
        if (!strcmp(r->columns[i], "time") || !strcmp(r->columns[i], "cputime")) first = places++ ? first : i;
    if (n < 3 || !isalpha((unsigned char)*words[2])) return EL_OK; /* of no type */
    r->foreign->cut = true;                                        /* unless it is whole */
    for (int i = 2; i < r->n_columns && i < n && n < r->n_columns; i++) {
        /* Older versions leave out what an operation has not. */
        const bool redop = !strcmp(r->columns[i], "redop") && !isalpha((unsigned char)*words[i]);
        if (!redop && !(!strcmp(r->columns[i], "root") && strchr(words[i], '.'))) continue;
        for (int k = n++; k > i; k--) words[k] = words[k - 1];
        words[i] = (char *)(redop ? "none" : "-1");
    }
    int width = places ? (r->n_columns - first) / places : 0; /* of a place; the first may be blank */
    bool blank = n == r->n_columns - width && width > 0;
    if (n < 6 || !places || (n < r->n_columns && !blank)) return EL_OK;
    for (int i = 0; blank && i < width; i++) {
        for (int k = n; k > first; k--) words[k] = words[k - 1];
        words[first] = (char *)"N/A";
        n++;
    }
    for (int i = 2; i < r->n_columns; i++) /* another program's line in the middle of it */
        if (strstr(r->columns[i], "time") && !isdigit((unsigned char)*words[i]) && strcmp(words[i], "N/A"))
            return EL_OK;
    snprintf(row.operation, sizeof row.operation, "%s", r->operation);
    row.bytes = atof(words[0]);
    row.count = atof(words[1]);
    EL_TRY(check_row(&row, r->name));
    for (int i = 2; i < r->n_columns; i++) {
        if (!strcmp(r->columns[i], "type")) snprintf(row.type, sizeof row.type, "%.31s", words[i]);
        if (!strcmp(r->columns[i], "redop")) snprintf(row.redop, sizeof row.redop, "%.31s", words[i]);
        if (!strcmp(r->columns[i], "root")) row.root = atoi(words[i]);
        if (!strcmp(r->columns[i], "time") || !strcmp(r->columns[i], "cputime"))
            EL_TRY(take_place(r, &row, words, i, place++ > 0));
    }
    r->n_rows++;
    r->foreign->cut = cut;
    return EL_OK;
}

/* What the file's name says, its own busbw / algbw may contradict. */
static enum el_status check_guess(const struct text_reader *r)
{
    const double factor = el_foreign_bus_factor(r->operation, r->foreign->ranks);
    if (r->told || !(fabs(r->bus_ratio / factor - 1) > 0.05)) return EL_OK;
    return el_fail(
        EL_ERR_INVALID,
        "%s: by its name it is of %s, whose busbw is %.3g times its algbw; in it that is %.3g times: name the "
        "file after its operation, as all_reduce.txt",
        el_path_tail(r->name), r->operation, factor, r->bus_ratio);
}

enum el_status el_foreign_nccl_text(const char *text, const char *name, struct el_foreign *foreign)
{
    struct text_reader r = {
        .foreign = foreign, .name = name, .operation = el_foreign_operation(name), .bus_ratio = NAN};
    enum el_status status = EL_OK;
    while (*text && status == EL_OK) {
        char line[LINE_BYTES];
        size_t length = strcspn(text, "\n");
        snprintf(line, sizeof line, "%.*s", (int)(length < sizeof line ? length : sizeof line - 1), text);
        text += length + (text[length] == '\n');
        char *at = (char *)past_label(line);
        at += strspn(at, " \t");
        if (*at == '#')
            status = take_comment(&r, at); /* also of a further run */
        else if (isdigit((unsigned char)*at) && r.n_columns)
            status = take_row(&r, at);
    }
    if (status == EL_OK && r.n_rows == 0) return EL_ERR_ABSENT;
    end_table(&r);
    foreign->cut |= !r.ended;
    if (status == EL_OK) status = set_ranks(foreign, &r.named, name);
    if (status == EL_OK) status = check_guess(&r);
    foreign->source = "nccl-tests";
    return status;
}

/* -I gives each process's times per call; otherwise there are those of all. */
static json_t *calls_of(const json_t *per_iter)
{
    const json_t *processes = json_object_get(per_iter, "per_process_max_times_us"),
                 *all = json_object_get(per_iter, "times_us");
    size_t n = json_array_size(json_array_get(processes, 0));
    EL_EACH(times, processes)
        if (json_array_size(times) != n || n == 0) return NULL;
    if (json_array_size(processes)) return json_deep_copy(processes);
    return json_array_size(all) ? json_pack("[o]", json_deep_copy(all)) : NULL;
}

static enum el_status take_result(const json_t *result, const char *operation, const char *name,
                                  struct el_foreign *foreign)
{
    struct el_foreign_row row = {.root = atoi(el_json_text(result, "root", "-1")),
                                 .bytes = el_json_number(result, "size"),
                                 .count = el_json_number(result, "count")};
    const char *told = el_json_text(result, "experiment_name", ""); /* ours: "all_reduce/ring" */
    size_t length = strcspn(told, "/");
    snprintf(row.operation, sizeof row.operation, "%.*s", (int)(length < 31 ? length : 31), told);
    if (isnan(el_foreign_bus_factor(row.operation, 2)))
        snprintf(row.operation, sizeof row.operation, "%s", operation);
    else if (told[length])
        snprintf(row.algorithm, sizeof row.algorithm, "%.31s", told + length + 1);
    snprintf(row.type, sizeof row.type, "%.31s", el_json_text(result, "type", "?"));
    snprintf(row.redop, sizeof row.redop, "%.31s", el_json_text(result, "redop", "none"));
    EL_TRY(check_row(&row, name));
    for (int in_place = 0; in_place < 2; in_place++) {
        const json_t *place = json_object_get(result, in_place ? "in_place" : "out_of_place");
        const json_t *each = json_object_get(result, in_place ? "in_place_per_iter" : "out_of_place_per_iter");
        double us = el_json_number(place, json_object_get(place, "time") ? "time" : "cpu_time");
        EL_TRY(add_place(foreign, &row, in_place, us, el_json_number(place, "bus_bw") / el_json_number(place, "alg_bw"),
                         el_json_number(place, "nwrong"), calls_of(each)));
    }
    return EL_OK;
}

enum el_status el_foreign_nccl_json(const json_t *document, const char *name, struct el_foreign *foreign)
{
    const json_t *config = json_object_get(document, "config"), *results = json_object_get(document, "results");
    const char *operation = "";
    double devices = el_json_number(config, "nthreads") * el_json_number(config, "ngpus");
    struct named named = {.of_a_process = devices >= 1 && devices <= RANKS_MAX ? (int)devices : 1};
    if (!json_is_object(config) || !json_is_array(results)) return EL_ERR_ABSENT;
    EL_EACH(word, json_object_get(document, "args"))
        if (!*operation && json_is_string(word)) operation = el_foreign_operation(json_string_value(word));
    if (!*operation) operation = el_foreign_operation(name);
    EL_EACH(device, json_object_get(config, "devices")) {
        char card[32];
        snprintf(card, sizeof card, "cuda:%d", (int)el_json_whole(device, "device"));
        const char *hex = el_json_text(device, "device_hex", ""); /* our JSON has the device's name there */
        add_device(foreign, &named, (int)el_json_whole(device, "rank"), (int)el_json_whole(device, "group"),
                   !strncmp(hex, "cpu:", 4) ? hex : card, el_json_text(device, "hostname", "?"),
                   el_json_text(device, "device_info", "?"));
    }
    foreign->source = "nccl-tests";
    EL_EACH(result, results) EL_TRY(take_result(result, operation, name, foreign));
    if (!json_array_size(results)) return el_fail(EL_ERR_INVALID, "%s: it has no results", el_path_tail(name));
    return set_ranks(foreign, &named, name);
}
