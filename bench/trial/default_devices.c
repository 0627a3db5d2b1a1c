/* The choice of devices where nobody made one. Two CPU devices show every mode at work on any machine. */
#include "bench/trial/default_devices.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/comm/share.h"
#include "runtime/device/device.h"
#include "runtime/parallel/train.h"

enum { CPU_DEVICES = 2, RANK_BYTES = EL_HOST_IDENTITY_BYTES + 8 };

int el_devices_default(struct el_device_name *devices)
{
    int gpus = el_device_gpus(), n = gpus > EL_MEMBERS_MAX ? EL_MEMBERS_MAX : gpus ? gpus : CPU_DEVICES;
    for (int i = 0; i < n; i++) {
        devices[i] = (struct el_device_name){.index = i};
        snprintf(devices[i].backend, sizeof devices[i].backend, "%s", gpus ? "cuda" : "cpu");
    }
    return n;
}

/* How many ranks before this one are on its host. */
static int local_rank(const char *texts, int rank)
{
    int n = 0;
    const char *host = strchr(texts + (size_t)rank * RANK_BYTES, ' ');
    for (int r = 0; r < rank; r++) n += strcmp(strchr(texts + (size_t)r * RANK_BYTES, ' '), host) == 0;
    return n;
}

enum el_status el_devices_of_ranks(struct el_bootstrap *bootstrap, struct el_device_name *devices)
{
    int size = el_bootstrap_size(bootstrap);
    bool gpus = false;
    char host[EL_HOST_IDENTITY_BYTES], *texts = calloc((size_t)size, RANK_BYTES);
    char mine[RANK_BYTES]; /* "cuda host", of a rank that sees GPUs, or "cpu host" */
    el_share_host(host);
    snprintf(mine, RANK_BYTES, "%s %s", el_device_gpus() ? "cuda" : "cpu", host);
    enum el_status status =
        el_bootstrap_agree(bootstrap, texts ? EL_OK : el_fail(EL_ERR_HOST_MEMORY, "no memory for %d ranks", size));
    if (status == EL_OK) status = el_share_texts(bootstrap, mine, RANK_BYTES, texts);
    for (int r = 0; r < size && status == EL_OK; r++)
        gpus = gpus || strncmp(texts + (size_t)r * RANK_BYTES, "cuda ", 5) == 0;
    for (int r = 0; r < size && status == EL_OK; r++) {
        devices[r] = (struct el_device_name){.index = gpus ? local_rank(texts, r) : r};
        snprintf(devices[r].backend, sizeof devices[r].backend, "%s", gpus ? "cuda" : "cpu");
    }
    free(texts);
    return status;
}

enum el_status el_devices_check(const struct el_device_name *devices, int n_devices)
{
    int n = 0;
    if (n_devices == 0) return EL_OK;
    EL_TRY(el_device_count(devices[0].backend, &n));
    if (strcmp(devices[0].backend, "cuda")) return EL_OK; /* the others have as many as one likes */
    for (int i = 0; i < n_devices; i++) {
        if (devices[i].index < n) continue;
        return el_fail(
            EL_ERR_ABSENT,
            "--devices: there is no cuda:%d: this process sees %d GPU%s, counted from cuda:0 in the order of "
            "CUDA_VISIBLE_DEVICES; cuda:0,cuda:0 puts two devices on one",
            devices[i].index, n, n == 1 ? "" : "s");
    }
    return EL_OK;
}
