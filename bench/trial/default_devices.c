/* The choice of devices where nobody made one. Two CPU devices show every mode at work on any machine. */
#include "bench/trial/trial.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/device/cuda_api.h"
#include "runtime/train/train.h"

enum { CPU_DEVICES = 2, SEEN_BYTES = EL_HOST_IDENTITY_BYTES + EL_DEVICE_UUID_BYTES + 16 };

enum el_status el_devices_default(struct el_device_name *devices, int *n_p)
{
    int gpus;
    EL_TRY(el_device_gpus(&gpus));
    int n = gpus > EL_MEMBERS_MAX ? EL_MEMBERS_MAX : gpus ? gpus : CPU_DEVICES;
    for (int i = 0; i < n; i++) {
        devices[i] = (struct el_device_name){.index = i};
        snprintf(devices[i].backend, sizeof devices[i].backend, "%s", gpus ? "cuda" : "cpu");
    }
    *n_p = n;
    return EL_OK;
}

/* "1 GPU-6b8f... host", as the ranks tell each other. */
static enum el_status look(char *text, size_t bytes)
{
    struct el_device_identity only = {.uuid = "-"};
    char host[EL_HOST_IDENTITY_BYTES];
    int gpus;
    el_share_host(host);
    EL_TRY(el_device_gpus(&gpus));
    if (gpus == 1) EL_TRY(el_device_gpu_identity(0, &only));
    snprintf(text, bytes, "%d %s %s", gpus, *only.uuid ? only.uuid : "-", host);
    return EL_OK;
}

static void read_seen(const char *text, struct el_devices_seen *seen)
{
    int host = 0;
    memset(seen, 0, sizeof *seen);
    sscanf(text, "%d %47s %n", &seen->gpus, seen->only, &host);
    snprintf(seen->host, sizeof seen->host, "%s", text + host);
}

/* Slurm's --gpus-per-task and Kubernetes show each rank one card, which is its cuda:0. */
enum el_status el_devices_card(const struct el_devices_seen *ranks, int rank, int *index_p)
{
    const struct el_devices_seen *mine = &ranks[rank];
    bool one = mine->gpus == 1;
    int before = 0;
    for (int r = 0; r < rank; r++) {
        if (strcmp(ranks[r].host, mine->host)) continue;
        before++;
        if (one && strlen(mine->only) > 1 && !strcmp(ranks[r].only, mine->only))
            return el_fail(EL_ERR_ABSENT,
                           "ranks %d and %d see the same one card (%s): let each see one of its own, or all of its "
                           "host (CUDA_VISIBLE_DEVICES); --devices cuda:0,cuda:0 shares a card",
                           r, rank, mine->only);
    }
    *index_p = one ? 0 : before;
    return EL_OK;
}

static enum el_status choose(const struct el_devices_seen *ranks, int size, struct el_device_name *devices)
{
    bool gpus = false;
    for (int r = 0; r < size; r++) gpus = gpus || ranks[r].gpus > 0;
    for (int r = 0; r < size; r++) {
        devices[r] = (struct el_device_name){.index = r};
        snprintf(devices[r].backend, sizeof devices[r].backend, "%s", gpus ? "cuda" : "cpu");
        if (gpus) EL_TRY(el_devices_card(ranks, r, &devices[r].index));
    }
    return EL_OK;
}

enum el_status el_devices_of_ranks(struct el_bootstrap *bootstrap, struct el_device_name *devices)
{
    int size = el_bootstrap_size(bootstrap);
    char mine[SEEN_BYTES] = "", *texts = calloc((size_t)size, SEEN_BYTES);
    struct el_devices_seen *ranks = calloc((size_t)size, sizeof *ranks);
    enum el_status status = look(mine, sizeof mine);
    if (!texts || !ranks) status = el_fail(EL_ERR_HOST_MEMORY, "no memory for %d ranks", size);
    status = el_bootstrap_agree(bootstrap, status);
    if (status == EL_OK) status = el_share_texts(bootstrap, mine, SEEN_BYTES, texts);
    for (int r = 0; r < size && status == EL_OK; r++) read_seen(texts + (size_t)r * SEEN_BYTES, &ranks[r]);
    if (status == EL_OK) status = choose(ranks, size, devices);
    free(texts);
    free(ranks);
    return status;
}

enum el_status el_devices_check(const struct el_device_name *devices, int n_devices)
{
    char visible[EL_CUDA_VISIBLE_BYTES];
    int n = 0;
    if (n_devices == 0) return EL_OK;
    EL_TRY(el_device_count(devices[0].backend, &n));
    if (!el_backend_facts(devices[0].backend).gpu) return EL_OK; /* the others have as many as one likes */
    for (int i = 0; i < n_devices; i++) {
        if (devices[i].index < n) continue;
        return el_fail(EL_ERR_ABSENT,
                       "--devices: there is no cuda:%d: this process sees %d GPU%s, counted from cuda:0 in the order "
                       "of CUDA_VISIBLE_DEVICES%s; cuda:0,cuda:0 puts two devices on one",
                       devices[i].index, n, n == 1 ? "" : "s", el_cuda_visible(visible));
    }
    return EL_OK;
}
