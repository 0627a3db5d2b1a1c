/* Uneven ends; see uneven.h. */
#include "runtime/layout/uneven.h"

#include <stdio.h>
#include <string.h>

#include "runtime/layout/config.h"

static const char *const words[] = {
    [EL_UNEVEN_OFF] = "off", [EL_UNEVEN_STOP] = "stop", [EL_UNEVEN_JOIN] = "join", [EL_UNEVEN_HANG] = "hang"};
enum { N_WORDS = sizeof words / sizeof words[0] };

/* "rank=1,batches=3", each once and in any order. */
static bool read_numbers(const char *text, struct el_uneven *uneven)
{
    bool rank = false, batches = false;
    for (int used; *text; text += used) {
        long long n;
        if (!rank && sscanf(text, "rank=%9lld%n", &n, &used) == 1)
            rank = true, uneven->rank = (int)n;
        else if (!batches && sscanf(text, "batches=%9lld%n", &n, &used) == 1)
            batches = true, uneven->fewer = n;
        else
            return false;
        if (text[used] == ',' && text[used + 1]) used++;
    }
    return rank || batches;
}

enum el_status el_uneven_read(const struct el_train_config *config, struct el_uneven *uneven_p)
{
    struct el_uneven uneven = {.rank = config->n_devices - 1, .fewer = 1};
    const size_t length = strcspn(config->uneven, ":");
    int how = 0;
    while (how < N_WORDS && (strlen(words[how]) != length || strncmp(config->uneven, words[how], length) != 0)) how++;
    if (how < N_WORDS) uneven.how = (enum el_uneven_how)how;
    bool good =
        how < N_WORDS && (!config->uneven[length] || (how && read_numbers(config->uneven + length + 1, &uneven)));
    if (!*config->uneven) good = true;
    if (!good)
        return el_fail(EL_ERR_INVALID,
                       "--uneven %s: give off, stop, join or hang, and behind it which rank has how many "
                       "batches fewer: stop:rank=1,batches=3",
                       config->uneven);
    if (uneven.rank < 0 || uneven.rank >= config->n_devices)
        return el_fail(EL_ERR_INVALID, "--uneven %s: there is no rank %d: give 0 to %d", config->uneven, uneven.rank,
                       config->n_devices - 1);
    if (uneven.fewer < 1) return el_fail(EL_ERR_INVALID, "--uneven %s: give at least 1 batch fewer", config->uneven);
    if (uneven.how && config->n_devices < 2)
        return el_fail(EL_ERR_INVALID, "--uneven %s: one rank has nobody to wait for: give --devices 2",
                       config->uneven);
    *uneven_p = uneven;
    return EL_OK;
}

int64_t el_uneven_batches(const struct el_uneven *uneven, int rank, int64_t steps)
{
    return uneven->how && rank == uneven->rank ? steps - uneven->fewer : steps;
}

int el_uneven_last(const struct el_uneven *uneven, int n_ranks, int64_t place, int64_t steps)
{
    return place < el_uneven_batches(uneven, n_ranks - 1, steps) ? n_ranks - 1 : n_ranks - 2;
}
