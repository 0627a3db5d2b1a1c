/* Reads a folder per class, like torchvision's ImageFolder: classes in the order of names, images at any depth, hidden
 * and other files ignored. */
#include <dirent.h>
#include <errno.h>
#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "runtime/base/grow.h"
#include "runtime/data/stored.h"

struct listing {
    char **classes;
    int n_classes;
    struct image {
        char *path;
        int32_t label;
    } * images;
    int64_t count;
    size_t room;
};

static void listing_free(struct listing *listing)
{
    for (int i = 0; i < listing->n_classes; i++) free(listing->classes[i]);
    for (int64_t i = 0; i < listing->count; i++) free(listing->images[i].path);
    free(listing->classes);
    free(listing->images);
}

static enum el_status no_memory(void)
{
    return el_fail(EL_ERR_HOST_MEMORY, "no memory for the names of images");
}

static bool is_folder(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static int is_shown(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static bool is_image(const char *name)
{
    static const char *const ends[] = {".png", ".jpg", ".jpeg", ".ppm", ".pgm"};
    const char *end = strrchr(name, '.');
    for (size_t i = 0; end && i < sizeof ends / sizeof ends[0]; i++)
        if (!strcasecmp(end, ends[i])) return *name != '.';
    return false;
}

static enum el_status take_class(const char *root, const char *name, struct listing *listing)
{
    char *path;
    if (asprintf(&path, "%s/%s", root, name) < 0) return no_memory();
    const bool folder = is_folder(path);
    free(path);
    if (!folder) return EL_OK;
    char **more = realloc(listing->classes, (size_t)(listing->n_classes + 1) * sizeof *more);
    if (more) listing->classes = more;
    if (!more || !(more[listing->n_classes] = strdup(name))) return no_memory();
    listing->n_classes++;
    return EL_OK;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static enum el_status list_classes(const char *root, struct listing *listing)
{
    struct dirent **entries;
    int n = scandir(root, &entries, is_shown, by_name);
    if (n < 0) return el_fail_errno("folder of images %s", el_path_tail(root));
    enum el_status status = EL_OK;
    for (int i = 0; i < n; i++) {
        if (status == EL_OK) status = take_class(root, entries[i]->d_name, listing);
        free(entries[i]);
    }
    free(entries);
    EL_TRY(status);
    if (listing->n_classes) return EL_OK;
    return el_fail(EL_ERR_INVALID,
                   "%s: no folders of classes in it: give images as DIR/CLASS/*.png (jpg, ppm), or as DIR/train/CLASS "
                   "and DIR/val/CLASS; or CIFAR-10's files (data_batch_*.bin)",
                   el_path_tail(root));
}

static enum el_status take_image(const FTSENT *entry, int32_t label, struct listing *listing)
{
    if (!EL_GROW(listing->images, listing->room, (size_t)listing->count + 1)) return no_memory();
    char *path = strdup(entry->fts_path);
    if (!path) return no_memory();
    listing->images[listing->count++] = (struct image){path, label};
    return EL_OK;
}

static enum el_status take_entry(FTS *tree, FTSENT *entry, int32_t label, struct listing *listing)
{
    switch (entry->fts_info) {
    case FTS_F:
        return is_image(entry->fts_name) ? take_image(entry, label, listing) : EL_OK;
    case FTS_D:
        if (entry->fts_level > 0 && entry->fts_name[0] == '.') fts_set(tree, entry, FTS_SKIP);
        return EL_OK;
    case FTS_DC:
        return el_fail(EL_ERR_INVALID, "%s: a symbolic link that leads back to a folder above it: remove it",
                       el_path_tail(entry->fts_path));
    case FTS_DNR:
    case FTS_ERR:
    case FTS_NS:
        errno = entry->fts_errno;
        return el_fail_errno("%s", el_path_tail(entry->fts_path));
    case FTS_SLNONE:
        if (!is_image(entry->fts_name)) return EL_OK;
        return el_fail(EL_ERR_INVALID, "%s: a symbolic link to nothing: remove it", el_path_tail(entry->fts_path));
    default:
        return EL_OK;
    }
}

static int tree_by_name(const FTSENT **a, const FTSENT **b)
{
    return strcmp((*a)->fts_name, (*b)->fts_name);
}

static enum el_status list_class(const char *root, const char *name, int32_t label, struct listing *listing)
{
    char *path;
    if (asprintf(&path, "%s/%s", root, name) < 0) return no_memory();
    const int64_t before = listing->count;
    FTS *tree = fts_open((char *[]){path, NULL}, FTS_LOGICAL | FTS_NOCHDIR, tree_by_name);
    enum el_status status = tree ? EL_OK : el_fail_errno("%s", el_path_tail(path));
    errno = 0;
    for (FTSENT *entry; status == EL_OK && (entry = fts_read(tree)); errno = 0)
        status = take_entry(tree, entry, label, listing);
    if (status == EL_OK && errno) status = el_fail_errno("%s", el_path_tail(path));
    if (status == EL_OK && listing->count == before)
        status = el_fail(EL_ERR_INVALID, "%s: no image in this class's folder (png, jpg, jpeg, ppm, pgm): remove it",
                         el_path_tail(path));
    if (tree) fts_close(tree);
    free(path);
    return status;
}

/* `known`: the training set's classes; NULL for the training set. */
static enum el_status list_images(const char *root, const struct listing *known, struct listing *listing)
{
    EL_TRY(list_classes(root, listing));
    for (int i = 0; i < listing->n_classes; i++) {
        int32_t label = i;
        if (known)
            for (label = 0; label < known->n_classes && strcmp(known->classes[label], listing->classes[i]);) label++;
        if (known && label == known->n_classes)
            return el_fail(EL_ERR_INVALID, "%s/%s: there is no class of this name in training", el_path_tail(root),
                           listing->classes[i]);
        EL_TRY(list_class(root, listing->classes[i], label, listing));
    }
    return EL_OK;
}

static enum el_status take_over(struct listing *listing, struct el_samples *samples_p)
{
    char **paths = malloc((size_t)(listing->count + 1) * sizeof *paths);
    struct el_samples samples = {.count = listing->count,
                                 .labels = malloc((size_t)(listing->count + 1) * sizeof *samples.labels)};
    enum el_status status = paths && samples.labels ? EL_OK : no_memory();
    for (int64_t i = 0; i < listing->count && status == EL_OK; i++) {
        paths[i] = listing->images[i].path;
        samples.labels[i] = listing->images[i].label;
    }
    if (status == EL_OK) status = el_stored_images(paths, &samples);
    if (status == EL_OK) {
        listing->count = 0;
        *samples_p = samples;
        return EL_OK;
    }
    free(paths);
    free(samples.labels);
    return status;
}

static enum el_status read_images(const struct el_dataset_spec *spec, struct listing *listing, int64_t side,
                                  struct el_samples *samples_p)
{
    if (spec->in_files || spec->heads) return take_over(listing, samples_p);
    struct el_loading loading = {0};
    struct el_load_times times = {0};
    struct el_reader reader = {.loading = &loading, .times = &times};
    EL_TRY(el_images_alloc(listing->count, side, listing->count * el_image_bytes(side), samples_p));
    for (int64_t i = 0; i < listing->count; i++) {
        samples_p->labels[i] = listing->images[i].label;
        reader.pixels = samples_p->pixels + samples_p->starts[i];
        EL_TRY(el_stored_read_image(listing->images[i].path, side, &reader));
        if (spec->progress) spec->progress(spec->context, i + 1, listing->count);
    }
    return EL_OK;
}

static char *folder_in(const char *dir, const char *name)
{
    char *path;
    if (asprintf(&path, "%s/%s", dir, name) < 0) return NULL;
    if (is_folder(path)) return path;
    free(path);
    return NULL;
}

static enum el_status read_both(const struct el_dataset_spec *spec, const char *train, const char *test,
                                struct el_images *set)
{
    struct listing known = {0}, other = {0};
    enum el_status status = list_images(train, NULL, &known);
    set->classes = spec->classes ? spec->classes : known.n_classes;
    if (status == EL_OK && known.n_classes > set->classes)
        status = el_fail(EL_ERR_INVALID, "%s: %d folders of classes, but --classes %lld", el_path_tail(train),
                         known.n_classes, (long long)set->classes);
    if (status == EL_OK && test) status = list_images(test, &known, &other);
    if (status == EL_OK) status = read_images(spec, &known, set->image, &set->train);
    if (status == EL_OK && test) status = read_images(spec, &other, set->image, &set->test);
    listing_free(&known);
    listing_free(&other);
    return status;
}

enum el_status el_image_folder_open(const struct el_dataset_spec *spec, struct el_images *set)
{
    char *train = folder_in(spec->source, "train"), *test = NULL;
    if (spec->test_path)
        test = strdup(spec->test_path);
    else if (train && !(test = folder_in(spec->source, "val")))
        test = folder_in(spec->source, "test");
    enum el_status status = read_both(spec, train ? train : spec->source, test, set);
    free(train);
    free(test);
    return status;
}
