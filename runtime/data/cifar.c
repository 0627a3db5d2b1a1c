/* Reads CIFAR-10's binary format, from one or several files; not CIFAR-100, which has two labels. */
#include "runtime/data/stored.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PIXELS = EL_CIFAR_SIDE * EL_CIFAR_SIDE, FILES_MAX = 64 };

static enum el_status check_length(const char *path, size_t length)
{
    if (length && length % EL_CIFAR_RECORD_BYTES == 0) return EL_OK;
    bool more = length && length % (EL_CIFAR_RECORD_BYTES + 1) == 0;
    return el_fail(
        EL_ERR_INVALID,
        "%s: %zu bytes are not a whole number of CIFAR-10's records (%d bytes: a label and 3 planes of 32 x 32)%s",
        el_path_tail(path), length, EL_CIFAR_RECORD_BYTES,
        more ? "; CIFAR-100 is not read" : ": is it cut off, or in another format?");
}

enum el_status el_cifar_pixels(const uint8_t *record, int64_t side, uint8_t *pixels)
{
    const uint8_t *planes = record + 1;
    uint8_t own[PIXELS * EL_COLOURS];
    for (int i = 0; i < PIXELS; i++)
        for (int c = 0; c < EL_COLOURS; c++) own[i * EL_COLOURS + c] = planes[c * PIXELS + i];
    return el_image_fit(own, EL_CIFAR_SIDE, EL_CIFAR_SIDE, side, pixels);
}

static enum el_status add_file(const struct el_cifar_file *file, const struct el_cifar_labels *labels, int64_t side,
                               struct el_samples *samples)
{
    const uint8_t *record = (const uint8_t *)file->text.bytes;
    int64_t n = (int64_t)(file->text.length / EL_CIFAR_RECORD_BYTES);
    for (int64_t i = 0; i < n; i++, record += EL_CIFAR_RECORD_BYTES, samples->count++) {
        int32_t label = labels->folded ? record[0] % (int32_t)labels->classes : record[0];
        if (label >= labels->classes || record[0] >= EL_CIFAR_CLASSES)
            return el_fail(EL_ERR_INVALID, "%s, record %lld: label %d, but there are %lld classes%s",
                           el_path_tail(file->path), (long long)i + 1, record[0], (long long)labels->classes,
                           record[0] >= EL_CIFAR_CLASSES ? "; is this CIFAR-10's binary format?" : "");
        samples->labels[samples->count] = label;
        if (side) EL_TRY(el_cifar_pixels(record, side, samples->pixels + samples->starts[samples->count]));
    }
    return EL_OK;
}

enum el_status el_cifar_parse(const struct el_cifar_file *files, int n, const struct el_cifar_labels *labels,
                              int64_t side, struct el_samples *samples_p)
{
    struct el_samples samples = {0};
    int64_t count = 0;
    for (int i = 0; i < n; i++) {
        EL_TRY(check_length(files[i].path, files[i].text.length));
        count += (int64_t)(files[i].text.length / EL_CIFAR_RECORD_BYTES);
    }
    EL_TRY(el_images_alloc(count, side, count * el_image_bytes(side), &samples));
    samples.count = 0;
    enum el_status status = EL_OK;
    for (int i = 0; i < n && status == EL_OK; i++) status = add_file(&files[i], labels, side, &samples);
    if (status == EL_OK)
        *samples_p = samples;
    else
        el_samples_free(&samples);
    return status;
}

static int is_batch(const struct dirent *entry)
{
    size_t length = strlen(entry->d_name);
    return length > 15 && !strncmp(entry->d_name, "data_batch_", 11) && !strcmp(entry->d_name + length - 4, ".bin");
}

static void free_entries(struct dirent **entries, int n)
{
    for (int i = 0; i < n; i++) free(entries[i]);
    if (n >= 0) free(entries);
}

bool el_cifar_is_folder(const char *path)
{
    struct dirent **entries;
    int n = scandir(path, &entries, is_batch, alphasort);
    free_entries(entries, n);
    return n > 0;
}

static enum el_status read_files(char *const *paths, int n, const struct el_cifar_labels *labels, int64_t side,
                                 bool in_files, struct el_samples *samples_p)
{
    struct el_cifar_file files[FILES_MAX] = {0};
    enum el_status status = EL_OK;
    for (int i = 0; i < n && status == EL_OK; i++) {
        files[i].path = paths[i];
        status = el_bytes_load(paths[i], &files[i].text);
    }
    if (status == EL_OK) status = el_cifar_parse(files, n, labels, in_files ? 0 : side, samples_p);
    if (status == EL_OK && in_files) status = el_stored_records(files, n, samples_p);
    for (int i = 0; i < n; i++) free(files[i].text.bytes);
    return status;
}

static enum el_status list_batches(const char *folder, char **paths, int *n_p)
{
    struct dirent **entries;
    int n = scandir(folder, &entries, is_batch, alphasort);
    if (n < 0) return el_fail_errno("data %s", el_path_tail(folder));
    enum el_status status = EL_OK;
    if (n > FILES_MAX)
        status =
            el_fail(EL_ERR_INVALID, "%s: %d files data_batch_*.bin; at most %d", el_path_tail(folder), n, FILES_MAX);
    for (*n_p = 0; *n_p < n && status == EL_OK; ++*n_p)
        if (asprintf(&paths[*n_p], "%s/%s", folder, entries[*n_p]->d_name) < 0) {
            status = el_fail(EL_ERR_HOST_MEMORY, "no memory for a path");
            break;
        }
    free_entries(entries, n);
    return status;
}

static enum el_status open_folder(const struct el_dataset_spec *spec, const struct el_cifar_labels *labels,
                                  struct el_images *set)
{
    char *paths[FILES_MAX], *test = NULL;
    int n = 0;
    enum el_status status = list_batches(spec->source, paths, &n);
    if (status == EL_OK) status = read_files(paths, n, labels, set->image, spec->in_files, &set->train);
    for (int i = 0; i < n; i++) free(paths[i]);
    EL_TRY(status);
    if (spec->test_path) return EL_OK;
    if (asprintf(&test, "%s/test_batch.bin", spec->source) < 0)
        return el_fail(EL_ERR_HOST_MEMORY, "no memory for a path");
    if (access(test, F_OK) == 0) status = read_files(&test, 1, labels, set->image, spec->in_files, &set->test);
    free(test);
    return status;
}

enum el_status el_cifar_open(const struct el_dataset_spec *spec, struct el_images *set)
{
    const struct el_cifar_labels labels = {.classes = set->classes};
    char *source = (char *)(uintptr_t)spec->source, *test = (char *)(uintptr_t)spec->test_path;
    if (el_cifar_is_folder(source))
        EL_TRY(open_folder(spec, &labels, set));
    else
        EL_TRY(read_files(&source, 1, &labels, set->image, spec->in_files, &set->train));
    return test ? read_files(&test, 1, &labels, set->image, spec->in_files, &set->test) : EL_OK;
}
