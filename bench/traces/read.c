/* Which files of a folder are one job's traces. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/base/jvalue.h"
#include "bench/traces/traces.h"

static bool ends(const char *name, size_t n, const char *with)
{
    size_t m = strlen(with);
    return n > m && !memcmp(name + n - m, with, m);
}

static int is_trace(const struct dirent *entry)
{
    const char *name = entry->d_name;
    size_t n = strlen(name);
    return ends(name, n, ".json") || ends(name, n, ".json.gz");
}

/* What of the name is the worker's: "host_12" of host_12.1795632979574216681.pt.trace.json.gz, as torch's
 * tensorboard_trace_handler names its files. 0: it is no such name. */
static size_t worker_length(const char *name)
{
    size_t n = strlen(name), digits;
    if (ends(name, n, ".gz")) n -= strlen(".gz");
    if (!ends(name, n, ".pt.trace.json")) return 0;
    n -= strlen(".pt.trace.json");
    for (digits = 0; digits < n && name[n - 1 - digits] >= '0' && name[n - 1 - digits] <= '9';) digits++;
    return digits > 0 && digits + 1 < n && name[n - 1 - digits] == '.' ? n - 1 - digits : n;
}

static bool of_one_worker(const char *a, const char *b)
{
    size_t n = worker_length(a);
    return n > 0 && n == worker_length(b) && !memcmp(a, b, n);
}

static enum el_status add_file(const char *path, struct el_traces *traces)
{
    const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    EL_TRY(el_kineto_read_file(path, &traces->list[traces->n]));
    snprintf(traces->files[traces->n], sizeof traces->files[0], "%s", name);
    traces->n++;
    return EL_OK;
}

static enum el_status make_room(size_t n, struct el_traces *traces)
{
    traces->list = calloc(n, sizeof *traces->list);
    traces->files = calloc(n, sizeof *traces->files);
    traces->left_out = json_array();
    if (!traces->list || !traces->files) return el_fail(EL_ERR_HOST_MEMORY, "no memory for %zu traces", n);
    return EL_OK;
}

/* In order of names, so that a worker's last file is behind its others. */
static enum el_status add_entries(const char *folder, struct dirent **entries, int n, struct el_traces *traces)
{
    EL_TRY(make_room((size_t)n, traces));
    for (int i = 0; i < n; i++) {
        char path[2 * EL_PATH_BYTES];
        bool older = i + 1 < n && of_one_worker(entries[i]->d_name, entries[i + 1]->d_name);
        snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        if (older)
            json_array_append_new(traces->left_out, el_json_string(entries[i]->d_name));
        else
            EL_TRY(add_file(path, traces));
    }
    return EL_OK;
}

static enum el_status add_folder(const char *folder, struct el_traces *traces)
{
    struct dirent **entries;
    char record[2 * EL_PATH_BYTES];
    snprintf(record, sizeof record, "%s/results.json", folder);
    if (access(record, F_OK) == 0)
        return el_fail(EL_ERR_INVALID,
                       "%s is a run's folder, with its record; its traces are where 'evenload run "
                       "--trace DIR' wrote them: give that folder",
                       folder);
    int n = scandir(folder, &entries, is_trace, versionsort);
    if (n < 0) return el_fail_errno("%s", folder);
    enum el_status status = n ? add_entries(folder, entries, n, traces)
                              : el_fail(EL_ERR_INVALID,
                                        "%s: no .json and no .json.gz is in it; give a folder of traces (as "
                                        "run --trace writes)",
                                        folder);
    for (int i = 0; i < n; i++) free(entries[i]);
    free(entries);
    return status;
}

enum el_status el_traces_read(const char *path, struct el_traces *traces_p)
{
    struct stat info;
    struct el_traces traces = {.n = 0};
    if (stat(path, &info) != 0) return el_fail_errno("%s", path);
    snprintf(traces.folder, sizeof traces.folder, "%s", path);
    enum el_status status = S_ISDIR(info.st_mode) ? add_folder(path, &traces) : make_room(1, &traces);
    if (status == EL_OK && !S_ISDIR(info.st_mode)) status = add_file(path, &traces);
    if (status == EL_OK) status = el_relate(traces.list, traces.n, &traces.relation);
    if (status == EL_OK)
        *traces_p = traces;
    else
        el_traces_free(&traces);
    return status;
}

void el_traces_free(struct el_traces *traces)
{
    for (size_t i = 0; i < traces->n; i++) el_kineto_free(&traces->list[i]);
    free(traces->list);
    free(traces->files);
    json_decref(traces->left_out);
    el_relation_free(&traces->relation);
    *traces = (struct el_traces){0};
}
