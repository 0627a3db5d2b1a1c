/* Chooses the backend by which members can reach each other. */
#include <stdlib.h>
#include <string.h>

#include "runtime/comm/comm_ops.h"
#include "runtime/comm/nccl/comm_nccl.h"
#include "runtime/comm/share.h"

/* Every rank needs the library and a card of its own. The reason for a no is dropped: another backend serves. */
static bool nccl_serves(struct el_bootstrap *bootstrap, struct el_device *device)
{
    const struct el_nccl_api *api = NULL;
    struct el_device_identity identity;
    enum el_status status =
        device && el_device_is_asynchronous(device) ? el_nccl_api_open(&api) : el_fail(EL_ERR_ABSENT, "not a GPU");
    if (el_bootstrap_agree(bootstrap, status) != EL_OK) return false;
    el_device_identify(device, &identity);
    return el_nccl_check_cards(api, bootstrap, identity.uuid) == EL_OK;
}

const char *el_comm_choose(struct el_bootstrap *bootstrap, struct el_device *device)
{
    if (nccl_serves(bootstrap, device)) return "nccl";
    if (el_comm_on_one_host(bootstrap)) return "shm";
    return strcmp(el_bootstrap_kind(bootstrap), "mpi") == 0 ? "mpi" : "tcp";
}

static bool have_cards_of_their_own(struct el_device *const *devices, int n)
{
    struct el_device_identity one, other;
    for (int i = 0; i < n; i++) {
        el_device_identify(devices[i], &one);
        for (int k = 0; k < i; k++) {
            el_device_identify(devices[k], &other);
            if (*one.uuid && strcmp(one.uuid, other.uuid) == 0) return false;
        }
    }
    return true;
}

const struct el_comm_backend *el_comm_choose_members(struct el_device *const *devices, int n, bool one_thread)
{
    const struct el_nccl_api *api;
    if (n < 2 || !el_device_is_asynchronous(devices[0])) return &el_comm_local_backend;
    if (have_cards_of_their_own(devices, n) && el_nccl_api_open(&api) == EL_OK) return &el_comm_nccl_backend;
    return one_thread ? &el_comm_peer_backend : &el_comm_staged_local_backend;
}
