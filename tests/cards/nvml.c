/* NVML: the machine's cards by name and number, what is used of their memory and by whom. Loads, clocks and power are
 * fixed figures. What other processes on the same fake cards use is not known here, but for FAKE_CARDS_GUEST. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/cards/machine.h"

enum { OK = 0, UNINITIALIZED = 1, INVALID = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, TOO_SMALL = 7 };
enum { GUEST_PID = 1, RESERVE_BYTES = 1 << 20, MHZ = 1410, MILLIWATT = 70000, BUSY_PCT = 50 };

struct memory {
    unsigned long long total, free, used;
};
struct memory_v2 {
    unsigned version;
    unsigned long long total, reserved, free, used;
};
struct process {
    unsigned pid;
    unsigned long long used;
    unsigned gpu_instance, compute_instance;
};
struct utilization {
    unsigned gpu, memory;
};

struct pci {
    char legacy[16];
    unsigned domain, bus, device, id, subsystem;
    char text[32];
};

int nvmlInit_v2(void);
const char *nvmlErrorString(int code);
int nvmlDeviceGetCount_v2(unsigned *n_p);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device_p);
int nvmlDeviceGetHandleByUUID(const char *uuid, void **device_p);
int nvmlDeviceGetUUID(void *device, char *text, unsigned bytes);
int nvmlDeviceGetName(void *device, char *text, unsigned bytes);
int nvmlDeviceGetMemoryInfo(void *device, struct memory *memory_p);
int nvmlDeviceGetMemoryInfo_v2(void *device, struct memory_v2 *memory_p);
int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *n_p, struct process *list);
int nvmlDeviceGetUtilizationRates(void *device, struct utilization *rates_p);
int nvmlDeviceGetClockInfo(void *device, int type, unsigned *mhz_p);
int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatt_p);
int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *millijoule_p);
int nvmlDeviceGetCurrentClocksEventReasons(void *device, unsigned long long *bits_p);

int nvmlDeviceGetPciInfo_v3(void *device, struct pci *pci_p);
int nvmlDeviceGetCurrPcieLinkGeneration(void *device, unsigned *value_p);
int nvmlDeviceGetMaxPcieLinkGeneration(void *device, unsigned *value_p);
int nvmlDeviceGetCurrPcieLinkWidth(void *device, unsigned *value_p);
int nvmlDeviceGetPcieReplayCounter(void *device, unsigned *count_p);
int nvmlDeviceGetNvLinkState(void *device, unsigned link, unsigned *active_p);
int nvmlDeviceGetNvLinkVersion(void *device, unsigned link, unsigned *version_p);
int nvmlDeviceGetNvLinkRemoteDeviceType(void *device, unsigned link, unsigned *type_p);
int nvmlDeviceGetNvLinkErrorCounter(void *device, unsigned link, int counter, unsigned long long *count_p);
int nvmlDeviceGetTopologyCommonAncestor(void *a, void *b, int *level_p);

static atomic_int users;
static char handles[CARDS_MAX]; /* a card's handle is its place here */

int nvmlInit_v2(void)
{
    if (atomic_fetch_add(&users, 1) == 0) cards_dawdle("nvml");
    return OK;
}

const char *nvmlErrorString(int code)
{
    static const char *const texts[] = {"Success", "Uninitialized", "Invalid Argument", "Not Supported"};
    return code >= 0 && code < 4 ? texts[code]
           : code == NOT_FOUND   ? "Not Found"
           : code == TOO_SMALL   ? "Insufficient Size"
                                 : "Unknown Error";
}

/* Of the machine, whatever CUDA shows this process. */
int nvmlDeviceGetCount_v2(unsigned *n_p)
{
    *n_p = (unsigned)cards_machine()->n_machine;
    return atomic_load(&users) > 0 ? OK : UNINITIALIZED;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device_p)
{
    if (index >= (unsigned)cards_machine()->n_machine) return INVALID;
    *device_p = &handles[index];
    return OK;
}

static int number_of(const void *device)
{
    return (int)((const char *)device - handles);
}

int nvmlDeviceGetUUID(void *device, char *text, unsigned capacity)
{
    char all[48];
    size_t used = cards_name(number_of(device), all);
    if (used >= capacity) return TOO_SMALL;
    memcpy(text, all, used + 1);
    return OK;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, void **device_p)
{
    char text[64];
    for (int i = 0; i < cards_machine()->n_machine; i++) {
        if (nvmlDeviceGetUUID(&handles[i], text, sizeof text) != OK || strcmp(text, uuid) != 0) continue;
        *device_p = &handles[i];
        return OK;
    }
    return NOT_FOUND;
}

int nvmlDeviceGetName(void *device, char *text, unsigned bytes)
{
    (void)device;
    return (unsigned)snprintf(text, bytes, "%s", cards_machine()->model->name) < bytes ? OK : TOO_SMALL;
}

/* What this process holds of it. */
static size_t own_bytes(const void *device)
{
    struct cards_machine *machine = cards_machine();
    for (int i = 0; i < machine->n_cards; i++)
        if (machine->cards[i].number == number_of(device)) return cards_held_bytes(&machine->cards[i]);
    return 0;
}

int nvmlDeviceGetMemoryInfo(void *device, struct memory *memory_p)
{
    const struct cards_machine *machine = cards_machine();
    size_t used = own_bytes(device) + machine->guest_bytes + RESERVE_BYTES;
    *memory_p = (struct memory){.total = machine->bytes, .used = used, .free = machine->bytes - used};
    return OK;
}

int nvmlDeviceGetMemoryInfo_v2(void *device, struct memory_v2 *memory_p)
{
    struct memory all;
    if (memory_p->version != (sizeof *memory_p | 2U << 24)) return INVALID;
    nvmlDeviceGetMemoryInfo(device, &all);
    memory_p->total = all.total, memory_p->free = all.free;
    memory_p->reserved = RESERVE_BYTES, memory_p->used = all.used - RESERVE_BYTES;
    return OK;
}

int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *n_p, struct process *list)
{
    const struct process all[] = {{.pid = (unsigned)getpid(), .used = own_bytes(device)},
                                  {.pid = GUEST_PID, .used = cards_machine()->guest_bytes}};
    unsigned n = 0, room = *n_p;
    for (unsigned i = 0; i < 2; i++) {
        if (all[i].used == 0) continue;
        if (n < room) list[n] = all[i];
        n++;
    }
    *n_p = n;
    return n <= room ? OK : TOO_SMALL;
}

int nvmlDeviceGetUtilizationRates(void *device, struct utilization *rates_p)
{
    (void)device;
    *rates_p = (struct utilization){BUSY_PCT, BUSY_PCT};
    return cards_machine()->mig ? NOT_SUPPORTED : OK; /* a part of a card has no load of its own */
}

int nvmlDeviceGetClockInfo(void *device, int type, unsigned *mhz_p)
{
    (void)device, (void)type;
    *mhz_p = MHZ;
    return OK;
}

int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatt_p)
{
    (void)device;
    *milliwatt_p = MILLIWATT;
    return OK;
}

int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *millijoule_p)
{
    (void)device;
    *millijoule_p = (unsigned long long)cards_now_ns() / 1000 * (MILLIWATT / 1000) / 1000;
    return OK;
}

int nvmlDeviceGetCurrentClocksEventReasons(void *device, unsigned long long *bits_p)
{
    (void)device;
    *bits_p = 0;
    return OK;
}

/* ---- links: cards of the newest kind hang on switches by NVLINKS links, of which the last is down; others have none.
 * Two and two share a PCIe switch. Of the width's maximum this driver does not tell. ---- */

enum { NVLINKS = 18, NVLINK_VERSION = 4, TO_SWITCH = 2, PCIE = 5, LANES = 16, ONE_SWITCH = 10, OTHER_SOCKET = 50 };

int nvmlDeviceGetPciInfo_v3(void *device, struct pci *pci_p)
{
    *pci_p = (struct pci){.bus = 16 + (unsigned)number_of(device)};
    return OK;
}

int nvmlDeviceGetCurrPcieLinkGeneration(void *device, unsigned *value_p)
{
    (void)device;
    *value_p = PCIE - 1;
    return OK;
}

int nvmlDeviceGetMaxPcieLinkGeneration(void *device, unsigned *value_p)
{
    (void)device;
    *value_p = PCIE;
    return OK;
}

int nvmlDeviceGetCurrPcieLinkWidth(void *device, unsigned *value_p)
{
    (void)device;
    *value_p = LANES;
    return OK;
}

/* Grows by FAKE_CARDS_REPLAYS whenever it is read. */
int nvmlDeviceGetPcieReplayCounter(void *device, unsigned *count_p)
{
    static atomic_uint count;
    const char *text = getenv("FAKE_CARDS_REPLAYS");
    (void)device;
    *count_p = atomic_fetch_add(&count, text ? (unsigned)strtoul(text, NULL, 10) : 0);
    return OK;
}

int nvmlDeviceGetNvLinkState(void *device, unsigned link, unsigned *active_p)
{
    (void)device;
    if (cards_machine()->model->major < 9) return NOT_SUPPORTED;
    *active_p = link < NVLINKS - 1;
    return link < NVLINKS ? OK : INVALID;
}

int nvmlDeviceGetNvLinkVersion(void *device, unsigned link, unsigned *version_p)
{
    (void)device, (void)link;
    *version_p = NVLINK_VERSION;
    return OK;
}

int nvmlDeviceGetNvLinkRemoteDeviceType(void *device, unsigned link, unsigned *type_p)
{
    (void)device, (void)link;
    *type_p = TO_SWITCH;
    return OK;
}

int nvmlDeviceGetNvLinkErrorCounter(void *device, unsigned link, int counter, unsigned long long *count_p)
{
    (void)device, (void)link, (void)counter;
    *count_p = 7;
    return OK;
}

int nvmlDeviceGetTopologyCommonAncestor(void *a, void *b, int *level_p)
{
    *level_p = number_of(a) / 2 == number_of(b) / 2 ? ONE_SWITCH : OTHER_SOCKET;
    return OK;
}
