/* Two accesses of the same bytes race unless both read, both are atomic, they are the same thread's, or a barrier of
 * their block is between them. Time is counted in sections: one begins with each block and with each barrier, so that
 * an access of an earlier section is another block's if it is older than this block, and behind a barrier else. */
#include "tests/gpu/emulator/races.h"

#include "tests/gpu/emulator/emulator.h"

#include <link.h>

#include <memory>
#include <unordered_map>
#include <vector>

__thread uintptr_t el_races_stack, el_races_stack_bytes;

namespace
{

enum { GRAIN_BYTES = 4, PAGE_BYTES = 4096, CELLS = PAGE_BYTES / GRAIN_BYTES, RECENT = 256, PAGES_KEPT = 512 };
enum access { READ, WRITE, ATOMIC, ACCESSES };

/* Who did each to four bytes, or to what begins in their midst, in this launch: the first section, the last, and its
 * thread. What overlaps otherwise, such as a pair of halves and its second one, is not compared. */
enum { MANY = 0xffff };
struct cell {
    unsigned first[ACCESSES], last[ACCESSES];
    uint16_t thread[ACCESSES];
};
struct page {
    uintptr_t number;
    struct cell cells[2][CELLS];
};

/* Pages are used again by later launches, for other memory: what is older than the launch is nothing. */
struct watch {
    unsigned section, launch, block;
    size_t used;
    std::vector<std::unique_ptr<struct page>> pages;
    std::unordered_map<uintptr_t, struct page *> of_number;
    struct page *recent[RECENT];
    uintptr_t shared, shared_bytes; /* where this thread has the program's __shared__ variables */
};

thread_local std::unique_ptr<struct watch> own;
thread_local bool off;
__thread struct watch *watching __attribute__((tls_model("initial-exec")));

inline struct page *page_of(struct watch *w, uintptr_t number)
{
    struct page *&recent = w->recent[number % RECENT];
    if (recent && recent->number == number) return recent;
    struct page *&found = w->of_number[number];
    if (!found) {
        if (w->used == w->pages.size()) w->pages.emplace_back(new struct page());
        found = w->pages[w->used++].get();
        found->number = number;
    }
    return recent = found;
}

/* Of the first object, which is the program: kernels in modules are not watched. */
int find_shared(struct dl_phdr_info *object, size_t, void *to)
{
    auto *w = static_cast<struct watch *>(to);
    w->shared = reinterpret_cast<uintptr_t>(object->dlpi_tls_data);
    for (int i = 0; i < object->dlpi_phnum; i++)
        if (object->dlpi_phdr[i].p_type == PT_TLS) w->shared_bytes = object->dlpi_phdr[i].p_memsz;
    return 1;
}

const char *const words[ACCESSES][2] = {
    {"a race with a read of another block", "a race with a read of another thread"},
    {"a race with a write of another block", "a race with a write of another thread"},
    {"a race with an atomic of another block", "a race with an atomic of another thread"}};

template <enum access ACCESS> inline void see(const void *at, size_t bytes)
{
    struct watch *w = watching;
    const uintptr_t begin = reinterpret_cast<uintptr_t>(at);
    if (begin - el_races_stack < el_races_stack_bytes) return;
    /* A __shared__ variable is each block's own, so that none has one of an earlier block. */
    const unsigned section = w->section, block = begin - w->shared < w->shared_bytes ? w->launch : w->block;
    const auto self = static_cast<uint16_t>(threadIdx.x);
    for (uintptr_t i = begin / GRAIN_BYTES; i * GRAIN_BYTES < begin + bytes; i++) {
        struct cell *cell = &page_of(w, i / CELLS)->cells[i * GRAIN_BYTES < begin][i % CELLS];
        for (int before = READ; before < ACCESSES; before++) {
            if (before == ACCESS && ACCESS != WRITE) continue;
            if (cell->first[before] >= w->launch && cell->first[before] < block) el_races_found(words[before][0]);
            if (cell->last[before] == section && cell->thread[before] != self) el_races_found(words[before][1]);
        }
        if (cell->first[ACCESS] < w->launch) cell->first[ACCESS] = section;
        cell->thread[ACCESS] = cell->last[ACCESS] != section || cell->thread[ACCESS] == self ? self : uint16_t{MANY};
        cell->last[ACCESS] = section;
    }
}

} // namespace

void el_races_watch(bool on)
{
    off = !on;
}

void el_races_begin(void)
{
    if (off) return;
    if (!own) own.reset(new struct watch()), dl_iterate_phdr(find_shared, own.get());
    watching = own.get();
    if (watching->used > PAGES_KEPT) {
        watching->used = 0;
        watching->of_number.clear();
        memset(watching->recent, 0, sizeof watching->recent);
    }
    watching->launch = watching->section + 1;
}

void el_races_end(void)
{
    watching = nullptr;
}

void el_races_block(void)
{
    if (watching) watching->block = ++watching->section;
}

void el_races_barrier(void)
{
    if (watching) watching->section++;
}

void el_emulator_atomic(const void *at, int bytes)
{
    if (watching) see<ATOMIC>(at, static_cast<size_t>(bytes));
}

#if !defined __SANITIZE_THREAD__ && !defined CARDS_THREAD_SANITIZER
#define SEEN(name, access, bytes)                                                                                      \
    extern "C" void __tsan_##name##bytes(const void *at)                                                               \
    {                                                                                                                  \
        if (watching) see<access>(at, bytes);                                                                          \
    }
#define SEEN_OF(name, access)                                                                                          \
    SEEN(name, access, 1)                                                                                              \
    SEEN(name, access, 2)                                                                                              \
    SEEN(name, access, 4)                                                                                              \
    SEEN(name, access, 8)                                                                                              \
    SEEN(name, access, 16)                                                                                             \
    extern "C" void __tsan_##name##_range(const void *at, size_t bytes)                                                \
    {                                                                                                                  \
        if (watching) see<access>(at, bytes);                                                                          \
    }
SEEN_OF(read, READ)
SEEN_OF(write, WRITE)
SEEN_OF(unaligned_read, READ)
SEEN_OF(unaligned_write, WRITE)
extern "C" void __tsan_init(void)
{
}
extern "C" void __tsan_func_entry(void *)
{
}
extern "C" void __tsan_func_exit(void)
{
}
#endif
