/* A gather to rank 0 and a broadcast of all; the kernel's names of its boot and namespaces. */
#include "runtime/comm/share.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/files.h"

enum el_status el_share_texts(struct el_bootstrap *bootstrap, const char *mine, size_t bytes, char *all)
{
    int size = el_bootstrap_size(bootstrap);
    char **texts = NULL;
    EL_TRY(el_bootstrap_gather(bootstrap, mine, &texts));
    memset(all, 0, bytes * (size_t)size);
    for (int i = 0; texts && i < size; i++) {
        snprintf(all + bytes * (size_t)i, bytes, "%s", texts[i]);
        free(texts[i]);
    }
    free(texts);
    return el_bootstrap_broadcast(bootstrap, all, bytes * (size_t)size);
}

bool el_share_boot(const char *name_space, char name[EL_BOOT_NAME_BYTES])
{
    char boot[64], path[64], link[48] = "";
    el_file_line("/proc/sys/kernel/random/boot_id", "", boot, sizeof boot);
    snprintf(path, sizeof path, "/proc/self/ns/%s", name_space);
    ssize_t length = readlink(path, link, sizeof link - 1);
    link[length < 0 ? 0 : length] = 0;
    snprintf(name, EL_BOOT_NAME_BYTES, "%s %s", boot, link);
    return boot[0] != 0;
}

/* Two containers of one host share no memory and not each other's PIDs: hence the namespace. */
void el_share_host(char identity[EL_HOST_IDENTITY_BYTES])
{
    char host[64] = "", boot[EL_BOOT_NAME_BYTES];
    gethostname(host, sizeof host - 1);
    el_share_boot("pid", boot);
    memset(identity, 0, EL_HOST_IDENTITY_BYTES);
    snprintf(identity, EL_HOST_IDENTITY_BYTES, "%s %s", host, boot);
}

bool el_comm_on_one_host(struct el_bootstrap *bootstrap)
{
    char mine[EL_HOST_IDENTITY_BYTES + EL_BOOT_NAME_BYTES] = "", first[sizeof mine];
    el_share_host(mine);
    el_share_boot("net", mine + EL_HOST_IDENTITY_BYTES);
    memcpy(first, mine, sizeof first);
    if (el_bootstrap_broadcast(bootstrap, first, sizeof first) != EL_OK) return false;
    bool same = memcmp(first, mine, sizeof first) == 0;
    return el_bootstrap_agree(bootstrap, same ? EL_OK : el_fail(EL_ERR_ABSENT, "another host")) == EL_OK;
}
