/* Memory: of cards, mapped for each cudaMalloc alone and filled with what is no number; and pinned memory of the
 * host's.
 *
 * A card's memory has a protection key, so that only those threads touch it that may: streams while they work. Where
 * the machine has no such keys, memory is the host's too, and only the libraries' and the copies' operands are looked
 * at. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/cards/machine.h"

enum { PINNED = -2, NONE = -1 };

struct block {
    char *address;
    size_t bytes;
    int device; /* or PINNED */
    struct block *next;
};

static struct block *blocks;
static struct sigaction before;

/* With the machine's lock. */
static struct block **find(const void *address)
{
    struct block **link = &blocks;
    while (*link &&
           ((const char *)address < (*link)->address || (const char *)address >= (*link)->address + (*link)->bytes))
        link = &(*link)->next;
    return link;
}

static int place_of(const void *address, size_t *left_p)
{
    struct cards_machine *machine = cards_machine();
    cards_lock(&machine->lock);
    const struct block *block = *find(address);
    int device = block ? block->device : NONE;
    if (block && left_p) *left_p = (size_t)(block->address + block->bytes - (const char *)address);
    cards_unlock(&machine->lock);
    return device;
}

int cards_device_of(const void *address, size_t *left_p)
{
    int place = place_of(address, left_p);
    return place >= 0 ? place : -1;
}

bool cards_is_pinned(const void *address)
{
    return place_of(address, NULL) == PINNED;
}

void cards_open_memory(unsigned devices)
{
    struct cards_machine *machine = cards_machine();
    for (int i = 0; i < machine->n_cards; i++)
        if (machine->cards[i].key > 0) pkey_set(machine->cards[i].key, devices >> i & 1 ? 0 : PKEY_DISABLE_ACCESS);
}

static void on_fault(int number, siginfo_t *info, void *context)
{
    (void)context;
    char text[160];
    int device = info->si_code == SEGV_PKUERR ? cards_device_of(info->si_addr, NULL) : -1;
    if (device >= 0) {
        int length = snprintf(text, sizeof text,
                              "fakecards: memory of card %d was touched at %p by who may not: the host, or a kernel of "
                              "another card\n",
                              device, info->si_addr);
        if (write(STDERR_FILENO, text, (size_t)length) < 0) _exit(1);
        abort();
    }
    sigaction(number, &before, NULL);
}

/* With the machine's lock. */
static void open_keys(struct cards_machine *machine)
{
    static bool done;
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    if (done) return;
    done = true;
    for (int i = 0; i < machine->n_cards; i++) machine->cards[i].key = pkey_alloc(0, PKEY_DISABLE_ACCESS);
    sigaction(SIGSEGV, &action, &before);
}

static char *map(size_t bytes, int key)
{
    char *address = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (address == MAP_FAILED) abort();
    if (key > 0 && pkey_mprotect(address, bytes, PROT_READ | PROT_WRITE, key) != 0) abort();
    return address;
}

static void keep(char *address, size_t bytes, int device)
{
    struct block *block = malloc(sizeof *block);
    if (!block) abort();
    *block = (struct block){.address = address, .bytes = bytes, .device = device, .next = blocks};
    blocks = block;
}

static size_t room(const struct cards_machine *machine, const struct cards_card *card)
{
    size_t used = card->used_bytes + machine->guest_bytes;
    return used < machine->bytes ? machine->bytes - used : 0;
}

int cards_library_take(int device, size_t bytes)
{
    struct cards_machine *machine = cards_machine();
    if (!cards_are_there()) return cudaSuccess;
    struct cards_card *card = &machine->cards[device];
    cards_lock(&machine->lock);
    bool fits = bytes <= room(machine, card);
    if (fits) card->used_bytes += bytes, card->library_bytes += bytes;
    cards_unlock(&machine->lock);
    return fits ? cudaSuccess : cudaErrorMemoryAllocation;
}

void cards_library_give(int device, size_t bytes)
{
    struct cards_machine *machine = cards_machine();
    if (!cards_are_there()) return;
    cards_lock(&machine->lock);
    machine->cards[device].used_bytes -= bytes;
    machine->cards[device].library_bytes -= bytes;
    cards_unlock(&machine->lock);
}

static size_t pages(size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (bytes + page - 1) / page * page;
}

/* Waits for the card, as one that has to make room may. */
cudaError_t cudaMalloc(void **address_p, size_t bytes)
{
    int device = cards_thread_device(), code = cards_begin(device);
    struct cards_machine *machine = cards_machine();
    if (code == cudaSuccess) code = cards_unsafe();
    if (code != cudaSuccess) return cards_error(code);
    *address_p = NULL;
    if (bytes == 0) return cudaSuccess;
    struct cards_card *card = &machine->cards[device];
    cards_wait_idle(card);
    cards_lock(&machine->lock);
    open_keys(machine);
    char *address = NULL;
    if (bytes <= room(machine, card)) {
        address = map(pages(bytes), card->key);
        keep(address, pages(bytes), device);
        card->used_bytes += pages(bytes);
        card->taken_bytes += pages(bytes);
        if (card->taken_bytes > card->most_bytes) card->most_bytes = card->taken_bytes;
    }
    cards_unlock(&machine->lock);
    if (!address) return cards_error(cudaErrorMemoryAllocation);
    cards_open_memory(1u << device);
    memset(address, 0xff, bytes);
    cards_open_memory(0);
    *address_p = address;
    return cudaSuccess;
}

static struct block *take_out(const void *address, bool pinned)
{
    struct cards_machine *machine = cards_machine();
    cards_lock(&machine->lock);
    struct block **link = find(address), *block = *link;
    if (block && (block->address != address || (block->device == PINNED) != pinned)) block = NULL;
    if (block) *link = block->next;
    if (block && pinned) machine->pinned_bytes -= block->bytes;
    if (block && !pinned) {
        machine->cards[block->device].used_bytes -= block->bytes;
        machine->cards[block->device].taken_bytes -= block->bytes;
    }
    cards_unlock(&machine->lock);
    return block;
}

static void wait_all(void)
{
    struct cards_machine *machine = cards_machine();
    for (int i = 0; i < machine->n_cards; i++) cards_wait_idle(&machine->cards[i]);
}

/* Whose memory it is, is waited for; with NULL it makes the context. */
cudaError_t cudaFree(void *address)
{
    int place = address ? cards_device_of(address, NULL) : cards_thread_device();
    int code = cards_begin(place);
    if (address && place < 0) code = cudaErrorInvalidValue;
    if (code == cudaSuccess) code = cards_unsafe();
    if (code != cudaSuccess || !address) return cards_error(code);
    cards_wait_idle(&cards_machine()->cards[place]);
    struct block *block = take_out(address, false);
    if (!block) return cards_error(cudaErrorInvalidValue);
    munmap(block->address, block->bytes);
    free(block);
    return cudaSuccess;
}

cudaError_t cudaHostAlloc(void **address_p, size_t bytes, unsigned flags)
{
    struct cards_machine *machine = cards_machine();
    int code = cards_begin(cards_thread_device());
    if (code == cudaSuccess) code = cards_unsafe();
    if (code == cudaSuccess && (flags != cudaHostAllocPortable || bytes == 0)) code = cudaErrorInvalidValue;
    if (code != cudaSuccess) return cards_error(code);
    wait_all();
    cards_lock(&machine->lock);
    char *address = map(pages(bytes), 0);
    keep(address, pages(bytes), PINNED);
    machine->pinned_bytes += pages(bytes);
    cards_unlock(&machine->lock);
    *address_p = address;
    return cudaSuccess;
}

cudaError_t cudaFreeHost(void *address)
{
    int code = cards_begin(cards_thread_device());
    if (code == cudaSuccess) code = cards_unsafe();
    if (code != cudaSuccess) return cards_error(code);
    wait_all();
    struct block *block = take_out(address, true);
    if (!block) return cards_error(cudaErrorInvalidValue);
    munmap(block->address, block->bytes);
    free(block);
    return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *free_p, size_t *total_p)
{
    struct cards_machine *machine = cards_machine();
    int device = cards_thread_device(), code = cards_begin(device);
    if (code != cudaSuccess) return cards_error(code);
    cards_lock(&machine->lock);
    *free_p = room(machine, &machine->cards[device]);
    *total_p = machine->bytes;
    cards_unlock(&machine->lock);
    return cudaSuccess;
}

size_t cards_held_bytes(const struct cards_card *card)
{
    struct cards_machine *machine = cards_machine();
    cards_lock(&machine->lock);
    size_t bytes = card->used_bytes;
    cards_unlock(&machine->lock);
    return bytes;
}
