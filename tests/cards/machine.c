/* The machine: how many cards, of which model, as the environment says; what cards are called; errors. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cards/machine.h"

enum { CUDA_VERSION = 13000 };

static const struct cards_model models[] = {{"H200", "NVIDIA H200", 9, 0},
                                            {"H100", "NVIDIA H100 80GB HBM3", 9, 0},
                                            {"A100", "NVIDIA A100-SXM4-80GB", 8, 0},
                                            {"T4", "Tesla T4", 7, 5},
                                            {"V100", "Tesla V100-SXM2-16GB", 7, 0}};

static struct cards_machine machine;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static __thread int current, last_error;

static int64_t number_of(const char *name, int64_t otherwise)
{
    const char *text = getenv(name);
    return text && *text ? strtoll(text, NULL, 10) : otherwise;
}

static void uuid_of(int number, unsigned char bytes[16])
{
    for (int i = 0; i < 16; i++) bytes[i] = (unsigned char)(0xfa + 17 * i + number);
}

size_t cards_name(int number, char name[48])
{
    unsigned char bytes[16];
    size_t used = (size_t)snprintf(name, 48, machine.mig ? "MIG" : "GPU");
    uuid_of(number, bytes);
    for (int i = 0; i < 16; i++)
        used += (size_t)snprintf(name + used, 48 - used, "%s%02x",
                                 i == 0 || i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", bytes[i]);
    return used;
}

/* Whether a word of so many letters is a card's name, or its beginning: "GPU-fa0b". */
static bool is_name_of(int number, const char *word, size_t length)
{
    char name[48];
    return length > 4 && length <= cards_name(number, name) && strncmp(name, word, length) == 0;
}

/* The card that one word names; -1: none, or several. Parts of cards (MIG) have no numbers. */
static int card_of(const char *word, size_t length, int n)
{
    int found = -1;
    char *end;
    long number = strtol(word, &end, 10);
    if (end == word + length && length > 0) return !machine.mig && number >= 0 && number < n ? (int)number : -1;
    for (int i = 0; i < n; i++) {
        if (!is_name_of(i, word, length)) continue;
        if (found >= 0) return -1;
        found = i;
    }
    return found;
}

/* As CUDA: numbers or names, up to the first that is none of a card's; with one named twice there is none. */
static void choose_visible(int n)
{
    const char *at = getenv("CUDA_VISIBLE_DEVICES");
    machine.n_cards = 0;
    for (int i = 0; !at && i < n; i++) machine.cards[machine.n_cards++].number = i;
    while (at && *at && machine.n_cards < CARDS_MAX) {
        size_t length = strcspn(at, ",");
        int number = card_of(at, length, n);
        if (number < 0) return;
        for (int i = 0; i < machine.n_cards; i++)
            if (machine.cards[i].number == number) {
                machine.n_cards = 0;
                return;
            }
        machine.cards[machine.n_cards++].number = number;
        at += length + (at[length] == ',');
    }
}

static void read_settings(void)
{
    const char *model = getenv("FAKE_CARDS_MODEL"), *loading = getenv("CUDA_MODULE_LOADING");
    int64_t n = number_of("FAKE_CARDS", 0);
    machine.n_machine = n > CARDS_MAX ? CARDS_MAX : (int)n;
    machine.bytes = (size_t)number_of("FAKE_CARDS_BYTES", (int64_t)1 << 30);
    machine.guest_bytes = (size_t)number_of("FAKE_CARDS_GUEST", 0);
    machine.peer = true;
    machine.mig = number_of("FAKE_CARDS_MIG", 0) != 0;
    choose_visible(machine.n_machine);
    machine.seed = (uint64_t)number_of("FAKE_CARDS_SEED", 0);
    machine.blocking = number_of("CUDA_LAUNCH_BLOCKING", 0) != 0;
    machine.eager = loading && strcmp(loading, "EAGER") == 0;
    machine.model = &models[0];
    for (size_t i = 0; model && i < sizeof models / sizeof models[0]; i++)
        if (strcmp(models[i].word, model) == 0) machine.model = &models[i];
}

/* Read when a context is made, as CUDA does. */
int cards_queues(void)
{
    int64_t n = number_of("FAKE_CARDS_QUEUES", 0);
    if (n > 0) n = number_of("CUDA_DEVICE_MAX_CONNECTIONS", n);
    return n > CARDS_QUEUES_MAX ? CARDS_QUEUES_MAX : (int)n;
}

struct cards_machine *cards_machine(void)
{
    pthread_once(&once, read_settings);
    return &machine;
}

bool cards_are_there(void)
{
    return cards_machine()->n_cards > 0;
}

uint64_t cards_seed(void)
{
    return cards_machine()->seed;
}

void cards_set_seed(uint64_t seed)
{
    cards_machine()->seed = seed;
}

void cards_set_peer(bool peer)
{
    cards_machine()->peer = peer;
    for (int i = 0; i < machine.n_cards; i++) atomic_store(&machine.cards[i].peers, 0);
}

int cards_thread_device(void)
{
    return current;
}

cudaError_t cards_error(int code)
{
    if (code != cudaSuccess) last_error = code;
    return (cudaError_t)code;
}

/* The cost of a context, as a card has one. */
enum { CONTEXT_BYTES = 3 << 20 };

static int open_context(struct cards_card *card, int device)
{
    int code = cudaSuccess;
    cards_lock(&card->lock);
    if (!card->open) {
        code = cards_library_take(device, CONTEXT_BYTES);
        cards_dawdle("context");
        card->open = code == cudaSuccess;
    }
    cards_unlock(&card->lock);
    return code;
}

int cards_begin(int device)
{
    if (device < 0 || device >= cards_machine()->n_cards)
        return cards_are_there() ? cudaErrorInvalidDevice : cudaErrorNoDevice;
    struct cards_card *card = &machine.cards[device];
    if (atomic_load(&card->error)) return atomic_load(&card->error);
    return open_context(card, device);
}

cudaError_t cudaGetDeviceCount(int *n_p)
{
    *n_p = cards_machine()->n_cards;
    return cards_error(*n_p > 0 ? cudaSuccess : cudaErrorNoDevice);
}

/* Makes the context, since CUDA 12. */
cudaError_t cudaSetDevice(int device)
{
    int code = cards_begin(device);
    if (code == cudaSuccess) current = device;
    return cards_error(code);
}

cudaError_t cudaGetDevice(int *device_p)
{
    *device_p = current;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties_p, int device)
{
    if (device < 0 || device >= cards_machine()->n_cards) return cards_error(cudaErrorInvalidDevice);
    const struct cards_model *model = machine.model;
    *properties_p = (struct cudaDeviceProp){
        .totalGlobalMem = machine.bytes, .major = model->major, .minor = model->minor, .multiProcessorCount = 4};
    snprintf(properties_p->name, sizeof properties_p->name, "%s", model->name);
    uuid_of(machine.cards[device].number, (unsigned char *)properties_p->uuid.bytes);
    return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version_p)
{
    *version_p = CUDA_VERSION;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version_p)
{
    *version_p = CUDA_VERSION;
    return cudaSuccess;
}

/* A card's error does not go away. */
cudaError_t cudaGetLastError(void)
{
    int code = cudaPeekAtLastError();
    last_error = cudaSuccess;
    return (cudaError_t)code;
}

cudaError_t cudaPeekAtLastError(void)
{
    int sticky = cards_are_there() ? atomic_load(&machine.cards[current].error) : cudaSuccess;
    return (cudaError_t)(sticky ? sticky : last_error);
}

static const struct {
    int code;
    const char *name, *text;
} errors[] = {
#define EL_EMULATED_ONE(name, value, text) {value, #name, text},
    EL_EMULATED_CUDA_ERRORS(EL_EMULATED_ONE)
#undef EL_EMULATED_ONE
};

const char *cudaGetErrorString(cudaError_t error)
{
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++)
        if (errors[i].code == (int)error) return errors[i].text;
    return "unrecognized error code";
}

const char *cudaGetErrorName(cudaError_t error)
{
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++)
        if (errors[i].code == (int)error) return errors[i].name;
    return "unrecognized error code";
}
