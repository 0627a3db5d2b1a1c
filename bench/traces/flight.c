/* Reads dumps of PyTorch's flight recorder: pickles and JSON, as one tree. */
#include "bench/traces/flight.h"

#include <ctype.h>
#include <dirent.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "profiles/pickle.h"
#include "profiles/snapshot.h"
#include "runtime/base/files.h"
#include "runtime/base/grow.h"
#include "runtime/base/utf8.h"

#define FILE_MAX ((int64_t)256 << 20)

enum { DEPTH_MAX = 8, HEAD_BYTES = 4096, RANKS_MAX = 1 << 20, NAME_BYTES = 128 };

/* Each text once; the flight's. */
static const char *keep(struct el_flight *flight, const char *text)
{
    char printable[NAME_BYTES];
    snprintf(printable, sizeof printable, "%s", text);
    el_utf8_printable(printable);
    if (!json_object_get(flight->texts, printable)) json_object_set_new(flight->texts, printable, json_true());
    void *at = json_object_iter_at(flight->texts, printable);
    return at ? json_object_iter_key(at) : "";
}

/* ---- a pickle as JSON ---- */

struct turn {
    struct el_pickle *pickle;
    size_t left; /* values: a pickle may name one a thousand times */
};

static json_t *turn(struct turn *t, uint32_t value, int depth)
{
    const struct el_pickle_value *v = &t->pickle->values[value];
    struct el_pickle_walk walk = el_pickle_walk(t->pickle, value);
    uint32_t key, item;
    if (t->left == 0 || depth > DEPTH_MAX) return json_null();
    t->left--;
    if (v->kind == EL_PICKLE_INT) return json_integer(v->whole);
    if (v->kind == EL_PICKLE_REAL) return el_json_real(v->real);
    if (v->kind == EL_PICKLE_TEXT) {
        json_t *text = json_stringn(v->text, v->n);
        return text ? text : json_string("?");
    }
    if (v->kind == EL_PICKLE_NONE) return json_null();
    json_t *whole = v->kind == EL_PICKLE_DICT ? json_object() : json_array();
    while (v->kind == EL_PICKLE_LIST && el_pickle_next(t->pickle, &walk, &item))
        json_array_append_new(whole, turn(t, item, depth + 1));
    while (v->kind == EL_PICKLE_DICT && el_pickle_next(t->pickle, &walk, &key) &&
           el_pickle_next(t->pickle, &walk, &item)) {
        const struct el_pickle_value *name = &t->pickle->values[key];
        if (name->kind != EL_PICKLE_TEXT) continue;
        if (name->n == strlen("frames") && !memcmp(name->text, "frames", name->n))
            json_object_set_new(whole, "where", json_string(el_snapshot_place_of(t->pickle, item).where));
        else
            json_object_setn_new(whole, name->text, name->n, turn(t, item, depth + 1));
    }
    return whole;
}

static enum el_status parse(const char *data, size_t size, const char *name, json_t **dump_p)
{
    json_error_t error;
    struct el_pickle pickle;
    if (size > 0 && (unsigned char)data[0] == 0x80) {
        EL_TRY(el_pickle_read((const uint8_t *)data, size, name, &pickle));
        struct turn t = {.pickle = &pickle, .left = size + 1000};
        *dump_p = turn(&t, pickle.root, 0);
        el_pickle_free(&pickle);
    } else {
        *dump_p = json_loadb(data, size, 0, &error);
        if (!*dump_p)
            return el_fail(EL_ERR_INVALID, "%s: a dump of PyTorch's flight recorder that is damaged: line %d: %s", name,
                           error.line, error.text);
    }
    return EL_OK;
}

/* ---- groups ---- */

static bool add_rank(struct el_flight_group *group, int64_t rank)
{
    size_t at = group->n; /* most come in order */
    while (at > 0 && group->ranks[at - 1] >= rank) at--;
    if (at < group->n && group->ranks[at] == rank) return true;
    if (!EL_GROW(group->ranks, group->room, group->n + 1)) return false;
    memmove(group->ranks + at + 1, group->ranks + at, (group->n - at) * sizeof *group->ranks);
    group->ranks[at] = rank;
    group->n++;
    return true;
}

/* "[0, 1]", or a list. */
static void read_ranks(const json_t *value, struct el_flight_group *group)
{
    const char *text = json_string_value(value);
    EL_EACH(rank, value)
        if (json_is_integer(rank) && json_integer_value(rank) >= 0 && json_integer_value(rank) < RANKS_MAX)
            add_rank(group, json_integer_value(rank));
    while (text && *text) {
        char *end = NULL;
        long rank = isdigit((unsigned char)*text) ? strtol(text, &end, 10) : -1;
        if (rank >= 0 && rank < RANKS_MAX) add_rank(group, rank);
        text = end ? end : text + 1;
    }
    group->given = group->n > 0;
}

/* What the dump says of a group's ranks: PyTorch's gloo records one row, without a name, which is the last group's. */
static const json_t *config_of(const json_t *dump, const char *name, size_t n_groups)
{
    const json_t *configs = json_object_get(dump, "pg_config"), *found = json_object_get(configs, name);
    EL_EACH_KEY(key, config, configs) {
        if (!found && el_json_is(config, "name", name) && *name) found = config;
        if (!found && !*key && n_groups == 1) found = config;
    }
    return found;
}

/* Groups that are split have one name and other ranks. -1: no memory. */
static int find_group(struct el_flight *flight, const json_t *dump, const json_t *entry, size_t n_groups, int64_t rank)
{
    const json_t *pair = json_object_get(entry, "process_group");
    const char *name = el_json_text(pair, "0", "?"), *described = el_json_text(pair, "1", "");
    const json_t *config = config_of(dump, name, n_groups);
    struct el_flight_group group = {.n = 0};
    char text[NAME_BYTES];
    if (*described && strcmp(described, "undefined") != 0)
        snprintf(text, sizeof text, "%.60s (%.40s)", described, name);
    else
        snprintf(text, sizeof text, "group %.60s", name);
    group.name = keep(flight, text);
    if (config) read_ranks(json_object_get(config, "ranks"), &group);
    for (size_t g = 0; g < flight->n_groups; g++) {
        struct el_flight_group *other = &flight->groups[g];
        bool same = other->name == group.name &&
                    (!group.given || !other->given ||
                     (group.n == other->n && !memcmp(group.ranks, other->ranks, group.n * sizeof *group.ranks)));
        if (!same) continue;
        for (size_t i = 0; i < group.n; i++) add_rank(other, group.ranks[i]);
        other->given |= group.given;
        add_rank(other, rank);
        free(group.ranks);
        return (int)g;
    }
    if (!EL_GROW(flight->groups, flight->groups_room, flight->n_groups + 1)) return free(group.ranks), -1;
    add_rank(&group, rank);
    flight->groups[flight->n_groups] = group;
    return (int)flight->n_groups++;
}

/* A dump's groups are kept in it by their names: finding them takes longer than all else. */
static int group_of(struct el_flight *flight, json_t *dump, const json_t *entry, int64_t rank)
{
    json_t *found = json_object_get(dump, "groups");
    const char *name = el_json_text(entry, "process_group.0", "?");
    const json_t *known = json_object_get(found, name);
    if (json_is_integer(known)) return (int)json_integer_value(known);
    const int group = find_group(flight, dump, entry, json_object_size(found), rank);
    json_object_set_new(found, name, json_integer(group));
    return group;
}

/* ---- calls ---- */

static bool is_true(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return json_is_true(value) || json_integer_value(value) > 0;
}

static double count_elements(const json_t *sizes)
{
    double sum = 0;
    EL_EACH(tensor, sizes) {
        double n = 1;
        EL_EACH(size, tensor) n *= json_number_value(size);
        sum += n;
    }
    return sum;
}

static const char *sizes_text(struct el_flight *flight, const json_t *sizes)
{
    char *text = json_dumps(sizes, JSON_COMPACT), line[48];
    size_t n = text ? strlen(text) : 0;
    if (n > 2 && text[1] == '[' && !strchr(text + 2, '['))
        snprintf(line, sizeof line, "%.*s", (int)n - 2, text + 1); /* one tensor */
    else
        snprintf(line, sizeof line, n > 46 ? "%.43s..." : "%s", n > 2 ? text : "");
    free(text);
    return keep(flight, line);
}

/* "nccl:send 0->1", "gloo:recv 1<-0": ranks of the group. */
static void read_ends(const char *name, const struct el_flight_group *group, struct el_flight_call *call)
{
    const char *blank = strchr(name, ' ');
    int a, b;
    bool sends = !strncmp(name, "send", 4);
    call->from = call->to = -1;
    if (!blank || sscanf(blank, sends ? " %d->%d" : " %d<-%d", &a, &b) != 2) return;
    if (a < 0 || b < 0 || (size_t)a >= group->n || (size_t)b >= group->n) return;
    call->from = group->ranks[sends ? a : b];
    call->to = group->ranks[sends ? b : a];
}

static bool read_entry(struct el_flight *flight, struct el_flight_rank *rank, json_t *dump, const json_t *entry)
{
    const char *full = el_json_text(entry, "profiling_name", "?"), *colon = strrchr(full, ':');
    const char *name = colon ? colon + 1 : full, *state = el_json_text(entry, "state", "");
    const json_t *sizes = json_object_get(entry, "input_sizes"), *types = json_object_get(entry, "input_dtypes");
    const bool message = is_true(entry, "is_p2p"), done = json_array_size(sizes) == 0;
    char key[48];
    struct el_flight_call call = {.group = group_of(flight, dump, entry, rank->rank),
                                  .number = el_json_whole(entry, message ? "p2p_seq_id" : "collective_seq_id"),
                                  .entered_ns = json_integer_value(json_object_get(entry, "time_created_ns")),
                                  .from = -1,
                                  .to = -1};
    if (call.group < 0) return false;
    if (call.number < 0 || call.entered_ns <= 0) return true;
    if (done) sizes = json_object_get(entry, "output_sizes"), types = json_object_get(entry, "output_dtypes");
    call.operation = keep(flight, name);
    call.type = keep(flight, el_json_text(types, "0", ""));
    call.sizes = sizes_text(flight, sizes);
    call.where = keep(flight, el_json_text(entry, "where", ""));
    call.elements = count_elements(sizes);
    if (message) read_ends(name, &flight->groups[call.group], &call);
    snprintf(key, sizeof key, "pg_status.%lld.last_completed_collective", (long long)el_json_whole(entry, "pg_id"));
    const json_t *last = el_json_at(dump, key);
    const int64_t ended = json_is_string(last) ? atoll(json_string_value(last)) : json_integer_value(last);
    call.ended = is_true(entry, "retired") || !strcmp(state, "completed") || (!message && call.number <= ended);
    call.begun = call.ended || !strcmp(state, "started");
    if (!EL_GROW(rank->calls, rank->room, rank->n + 1)) return false;
    rank->calls[rank->n++] = call;
    return true;
}

static int by_call(const void *a, const void *b)
{
    const struct el_flight_call *x = a, *y = b;
    if (x->group != y->group) return x->group < y->group ? -1 : 1;
    if ((x->from < 0) != (y->from < 0)) return x->from < 0 ? -1 : 1;
    if (x->number != y->number) return x->number < y->number ? -1 : 1;
    return (x->entered_ns > y->entered_ns) - (x->entered_ns < y->entered_ns);
}

/* Coalesced calls have one number: they are one. */
static void join(struct el_flight_rank *rank)
{
    size_t n = 0;
    if (rank->n) qsort(rank->calls, rank->n, sizeof *rank->calls, by_call);
    for (size_t i = 0; i < rank->n; i++) {
        struct el_flight_call *last = n ? &rank->calls[n - 1] : NULL, *call = &rank->calls[i];
        if (last && call->from < 0 && last->from < 0 && last->group == call->group && last->number == call->number) {
            last->elements += call->elements;
            last->ended &= call->ended;
            last->begun &= call->begun;
        } else
            rank->calls[n++] = *call;
    }
    rank->n = n;
}

const struct el_flight_call *el_flight_find(const struct el_flight_rank *rank, const struct el_flight_call *like)
{
    size_t low = 0, high = rank->n;
    for (size_t i = 0; i < rank->n && like->from >= 0; i++) {
        const struct el_flight_call *call = &rank->calls[i];
        if (call->group == like->group && call->from == like->from && call->to == like->to && !call->ended) return call;
    }
    while (low < high && like->from < 0) {
        size_t middle = low + (high - low) / 2;
        const struct el_flight_call *call = &rank->calls[middle];
        bool before =
            call->group < like->group || (call->group == like->group && call->from < 0 && call->number < like->number);
        if (before)
            low = middle + 1;
        else
            high = middle;
    }
    if (like->from >= 0 || low == rank->n) return NULL;
    const struct el_flight_call *call = &rank->calls[low];
    return call->group == like->group && call->from < 0 && call->number == like->number ? call : NULL;
}

const struct el_flight_rank *el_flight_rank_at(const struct el_flight *flight, int64_t rank)
{
    size_t low = 0, high = flight->n_ranks;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (flight->ranks[middle].rank < rank)
            low = middle + 1;
        else
            high = middle;
    }
    return low < flight->n_ranks && flight->ranks[low].rank == rank ? &flight->ranks[low] : NULL;
}

const struct el_flight_call *el_flight_next_waiting(const struct el_flight_rank *rank,
                                                    const struct el_flight_call *last)
{
    for (size_t i = last ? (size_t)(last - rank->calls) + 1 : 0; i < (size_t)rank->n; i++) {
        const struct el_flight_call *call = &rank->calls[i];
        if (!call->ended && (!last || call->group != last->group || (call->from < 0) != (last->from < 0))) return call;
    }
    return NULL;
}

const struct el_flight_call *el_flight_waits_in(const struct el_flight_rank *rank)
{
    const struct el_flight_call *first = NULL, *call = NULL;
    while ((call = el_flight_next_waiting(rank, call)))
        if (!first || (call->begun == first->begun ? call->entered_ns < first->entered_ns : call->begun)) first = call;
    return first;
}

const struct el_flight_call *el_flight_last(const struct el_flight_rank *rank)
{
    const struct el_flight_call *last = NULL;
    for (size_t i = 0; i < rank->n; i++)
        if (!last || rank->calls[i].entered_ns >= last->entered_ns) last = &rank->calls[i];
    return last;
}

void el_flight_begin(struct el_flight *flight)
{
    *flight = (struct el_flight){.folder = "", .version = "?", .texts = json_object(), .left_out = json_array()};
}

void el_flight_free(struct el_flight *flight)
{
    for (size_t i = 0; i < flight->n_ranks; i++) free(flight->ranks[i].calls);
    for (size_t i = 0; i < flight->n_groups; i++) free(flight->groups[i].ranks);
    free(flight->ranks);
    free(flight->groups);
    json_decref(flight->texts);
    json_decref(flight->left_out);
    *flight = (struct el_flight){.folder = ""};
}

/* {name: null} */
static json_t *name_groups(const json_t *entries)
{
    json_t *names = json_object();
    EL_EACH(entry, entries) json_object_set_new(names, el_json_text(entry, "process_group.0", "?"), json_null());
    return names;
}

enum el_status el_flight_parse(const char *data, size_t size, const char *name, int64_t rank, struct el_flight *flight)
{
    json_t *dump;
    EL_TRY(parse(data, size, name, &dump));
    const json_t *entries = json_object_get(dump, "entries");
    json_object_set_new(dump, "groups", name_groups(entries));
    bool enough = EL_GROW(flight->ranks, flight->ranks_room, flight->n_ranks + 1);
    enum el_status status = EL_OK;
    if (!json_is_array(entries))
        status = el_fail(EL_ERR_INVALID, "%s: no dump of PyTorch's flight recorder: it has no entries", name);
    if (status == EL_OK && enough) {
        struct el_flight_rank *its = &flight->ranks[flight->n_ranks++];
        *its = (struct el_flight_rank){.rank = rank, .file = keep(flight, name)};
        flight->version = keep(flight, el_json_text(dump, "version", "?"));
        EL_EACH(entry, entries) enough = enough && read_entry(flight, its, dump, entry);
        join(its);
    }
    json_decref(dump);
    return status != EL_OK || enough ? status : el_fail(EL_ERR_HOST_MEMORY, "%s: no memory", name);
}

/* ---- files ---- */

static const char *tail(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* The number that ends the name, before .json, .pickle or .pkl; -1: none. */
static int64_t rank_of(const char *name)
{
    size_t n = strlen(name), digits = 0;
    static const char *const endings[] = {".json", ".pickle", ".pkl"};
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        size_t m = strlen(endings[i]);
        if (n > m && !strcmp(name + n - m, endings[i])) n -= m;
    }
    while (digits < n && digits < 7 && isdigit((unsigned char)name[n - 1 - digits])) digits++;
    return digits > 0 && digits < 7 ? strtoll(name + n - digits, NULL, 10) : -1;
}

/* By its first bytes: folders of traces hold gigabytes. */
static bool looks_like_dump(const char *path)
{
    char head[HEAD_BYTES + 1];
    FILE *file;
    if (rank_of(tail(path)) < 0 || el_file_stream("", path, INT64_MAX, &file) != EL_OK) return false;
    size_t n = fread(head, 1, HEAD_BYTES, file);
    fclose(file);
    head[n] = 0;
    static const char *const words[] = {"\"entries\"", "\"pg_config\"", "\"comm_lib_version\"", "\"nccl_version\""};
    bool found = n > 1 && (unsigned char)head[0] == 0x80 && memmem(head, n, "entries", 7);
    if (n > 1 && (unsigned char)head[0] == 0x80) found |= memmem(head, n, "pg_config", 9) != NULL;
    for (size_t i = 0; i < 4 && *head == '{'; i++) found |= strstr(head, words[i]) != NULL;
    return found && !strstr(head, "traceEvents");
}

static int is_no_dot(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static enum el_status add_file(const char *path, struct el_flight *flight)
{
    const char *name = tail(path);
    const int64_t rank = rank_of(name);
    char *data;
    size_t n;
    for (size_t i = 0; i < flight->n_ranks; i++) {
        const char *other = flight->ranks[i].file;
        if (flight->ranks[i].rank != rank) continue;
        bool twin = !strncmp(name, other, strlen(other)); /* JSON beside its pickle, which has the lines of code */
        if (!twin) json_array_append_new(flight->left_out, el_json_string(name));
        return EL_OK;
    }
    EL_TRY(el_file_read(path, FILE_MAX, &data, &n));
    enum el_status status = el_flight_parse(data, n, name, rank, flight);
    free(data);
    return status;
}

/* And of the folders in it: a node's each. Dumps without an ending, pickles, come before trace_0.json. */
static enum el_status add_folder(const char *folder, int depth, struct el_flight *flight)
{
    struct dirent **entries;
    enum el_status status = EL_OK;
    int n = scandir(folder, &entries, is_no_dot, versionsort);
    if (n < 0) return el_fail_errno("%s", folder);
    for (int i = 0; i < n; i++) {
        char path[PATH_MAX];
        struct stat info;
        int length = snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        bool there = status == EL_OK && length < PATH_MAX && stat(path, &info) == 0;
        if (there && S_ISREG(info.st_mode) && looks_like_dump(path)) status = add_file(path, flight);
        if (there && S_ISDIR(info.st_mode) && depth == 0) status = add_folder(path, depth + 1, flight);
        free(entries[i]);
    }
    free(entries);
    return status;
}

static int by_rank(const void *a, const void *b)
{
    const struct el_flight_rank *x = a, *y = b;
    return (x->rank > y->rank) - (x->rank < y->rank);
}

/* All ranks are in the default group, even those whose dump is missing. */
static bool fill_default_group(struct el_flight *flight)
{
    int64_t highest = -1;
    bool enough = true;
    for (size_t g = 0; g < flight->n_groups; g++)
        if (flight->groups[g].n && flight->groups[g].ranks[flight->groups[g].n - 1] > highest)
            highest = flight->groups[g].ranks[flight->groups[g].n - 1];
    for (size_t g = 0; g < flight->n_groups && highest < RANKS_MAX; g++) {
        struct el_flight_group *group = &flight->groups[g];
        if (group->given || strncmp(group->name, "default_pg", 10) != 0) continue;
        for (int64_t rank = 0; rank <= highest; rank++) enough = enough && add_rank(group, rank);
        group->given = true;
    }
    return enough;
}

enum el_status el_flight_read(const char *path, struct el_flight *flight_p)
{
    struct stat info;
    struct el_flight flight;
    if (stat(path, &info) != 0) return el_fail_errno("%s", path);
    if (S_ISREG(info.st_mode) && !looks_like_dump(path)) return EL_ERR_ABSENT;
    el_flight_begin(&flight);
    flight.folder = keep(&flight, path);
    enum el_status status = S_ISDIR(info.st_mode) ? add_folder(path, 0, &flight) : add_file(path, &flight);
    if (status == EL_OK && flight.n_ranks == 0) status = EL_ERR_ABSENT;
    if (status == EL_OK) qsort(flight.ranks, flight.n_ranks, sizeof *flight.ranks, by_rank);
    if (status == EL_OK && !fill_default_group(&flight)) status = el_fail(EL_ERR_HOST_MEMORY, "%s: no memory", path);
    if (status == EL_OK)
        *flight_p = flight;
    else
        el_flight_free(&flight);
    return status;
}
