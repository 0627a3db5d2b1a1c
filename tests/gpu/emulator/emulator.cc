/* A block at a time, its threads as fibers. A fiber that reaches no barrier goes on with the next thread, so that kernels
 * without barriers cost no switch. Blocks and threads run upwards in one launch and downwards in the next: a result
 * that hangs on their order shows as other bits in a second run. */
#include "tests/gpu/emulator/emulator.h"

#include "tests/cards/cards.h"
#include "tests/gpu/emulator/races.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

#include <memory>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif

__thread struct el_emulator_index threadIdx, blockIdx, blockDim, gridDim __attribute__((tls_model("initial-exec")));

namespace
{

enum { WARP = 32, THREADS_MAX = 1024, STACK_BYTES = 64 * 1024, CAPABILITY = 75 };

struct barrier {
    unsigned expected, arrived, generation, lanes;
};

struct fiber {
    ucontext_t context; /* how it begins */
    void *place[5];     /* where it stopped */
    std::unique_ptr<char[]> stack;
    unsigned thread;
    bool made, begun, idle;
    struct barrier *waits_for;
    unsigned generation; /* of the barrier when this fiber came to it */
    void *fake_stack;
};

struct state {
    struct fiber fibers[THREADS_MAX];
    void *scheduler[5];
    const void *scheduler_stack;
    size_t scheduler_stack_bytes;
    void *scheduler_fake_stack;
    struct fiber *running;
    const std::function<void()> *kernel;
    const void *code;
    unsigned threads, next;
    bool downwards;
    struct barrier block, groups[THREADS_MAX]; /* the latter of lanes that shuffle, at the place of the lowest */
    uint64_t words[THREADS_MAX];
};

/* A stream's thread has one from its first kernel to its end. */
thread_local std::unique_ptr<struct state> own;
__thread struct state *emulator __attribute__((tls_model("initial-exec")));

const char *name_of(const void *code)
{
    Dl_info found;
    int status;
    if (!dladdr(code, &found) || !found.dli_sname) return "a kernel";
    const char *name = abi::__cxa_demangle(found.dli_sname, NULL, NULL, &status);
    return name ? name : found.dli_sname;
}

[[noreturn]] void fail(const char *words)
{
    fprintf(stderr, "emulator: %s: block %u, thread %u: %s\n", name_of(emulator->code), blockIdx.x, threadIdx.x, words);
    abort();
}

/* Tells the address sanitizer of the stack that is to be used; nothing without it. */
void leave_for(void **fake_stack, const void *stack, size_t bytes)
{
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_start_switch_fiber(fake_stack, stack, bytes);
#else
    (void)fake_stack, (void)stack, (void)bytes;
#endif
}

void arrive(void *fake_stack, const void **from, size_t *bytes)
{
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_finish_switch_fiber(fake_stack, from, bytes);
#else
    (void)fake_stack, (void)from, (void)bytes;
#endif
}

/* A switch of stacks by the compiler's own words: swapcontext() asks the kernel for signals' masks each time, which
 * takes longer than all that kernels do. Who is jumped to goes on behind its own `stop`. The address sanitizer would
 * clear the whole stack's marks at each jump, twice as much work as all else: it is told of stacks above. */
#define SWITCHES __attribute__((noinline, no_sanitize("address")))

SWITCHES void jump(void **to)
{
    __builtin_longjmp(to, 1);
}

SWITCHES void stop(void **here, void **to)
{
    if (__builtin_setjmp(here) == 0) jump(to);
}

SWITCHES void begin(void **here, const ucontext_t *context)
{
    if (__builtin_setjmp(here) == 0) setcontext(context);
}

void to_scheduler(struct fiber *self)
{
    leave_for(&self->fake_stack, emulator->scheduler_stack, emulator->scheduler_stack_bytes);
    stop(self->place, emulator->scheduler);
    arrive(self->fake_stack, &emulator->scheduler_stack, &emulator->scheduler_stack_bytes);
    threadIdx.x = self->thread;
}

void to_fiber(struct fiber *next)
{
    emulator->running = next;
    el_races_stack = reinterpret_cast<uintptr_t>(next->stack.get()), el_races_stack_bytes = STACK_BYTES;
    leave_for(&emulator->scheduler_fake_stack, next->stack.get(), STACK_BYTES);
    if (next->begun)
        stop(emulator->scheduler, next->place);
    else
        next->begun = true, begin(emulator->scheduler, &next->context);
    arrive(emulator->scheduler_fake_stack, nullptr, nullptr);
}

void open_barrier(struct barrier *barrier)
{
    barrier->arrived = 0;
    barrier->generation++;
    if (barrier == &emulator->block) el_races_barrier();
}

/* The thread that has ended is waited for no longer. */
void drop_out(struct barrier *barrier)
{
    barrier->expected--;
    if (barrier->expected > 0 && barrier->arrived == barrier->expected) open_barrier(barrier);
}

void fiber_main(void)
{
    struct fiber *self = emulator->running;
    arrive(self->fake_stack, &emulator->scheduler_stack, &emulator->scheduler_stack_bytes);
    for (;;) {
        while (emulator->next < emulator->threads) {
            unsigned turn = emulator->next++;
            self->thread = emulator->downwards ? emulator->threads - 1 - turn : turn;
            threadIdx.x = self->thread;
            (*emulator->kernel)();
            drop_out(&emulator->block);
        }
        self->idle = true;
        to_scheduler(self);
    }
}

void prepare(struct fiber *fiber)
{
    if (!fiber->made) {
        fiber->made = true;
        fiber->stack.reset(new char[STACK_BYTES]);
        getcontext(&fiber->context);
        fiber->context.uc_stack.ss_sp = fiber->stack.get();
        fiber->context.uc_stack.ss_size = STACK_BYTES;
        fiber->context.uc_link = nullptr;
        makecontext(&fiber->context, fiber_main, 0);
    }
    fiber->idle = false;
    fiber->waits_for = nullptr;
}

void wait_at(struct barrier *barrier)
{
    struct fiber *self = emulator->running;
    if (++barrier->arrived == barrier->expected) {
        open_barrier(barrier);
        return;
    }
    self->waits_for = barrier;
    self->generation = barrier->generation;
    to_scheduler(self);
    self->waits_for = nullptr;
}

bool may_run(const struct fiber *fiber)
{
    return !fiber->idle && (!fiber->waits_for || fiber->waits_for->generation != fiber->generation);
}

/* A warp runs on until all of it waits for others: as far ahead as barriers let it, so that a missing one shows. */
bool resume(unsigned used)
{
    bool moved = false;
    for (unsigned first = 0; first < used; first += WARP)
        for (bool again = true; again;) {
            again = false;
            for (unsigned i = first; i < used && i < first + WARP; i++)
                if (may_run(&emulator->fibers[i])) to_fiber(&emulator->fibers[i]), moved = again = true;
        }
    return moved;
}

bool all_idle(unsigned used)
{
    for (unsigned i = 0; i < used; i++)
        if (!emulator->fibers[i].idle) return false;
    return true;
}

/* Starts fibers as long as threads are left, and resumes those whose barrier has opened. */
void run_block(void)
{
    unsigned used = 0;
    emulator->next = 0;
    emulator->block = {emulator->threads, 0, 0, 0};
    el_races_block();
    while (emulator->next < emulator->threads) {
        prepare(&emulator->fibers[used]);
        to_fiber(&emulator->fibers[used++]);
    }
    while (!all_idle(used)) {
        if (resume(used)) continue;
        fail("threads wait at a barrier that others never reach");
    }
}

} // namespace

void __syncthreads(void)
{
    wait_at(&emulator->block);
}

uint64_t el_emulator_shuffle(unsigned lanes, uint64_t word, int mask)
{
    const unsigned self = threadIdx.x, other = self ^ static_cast<unsigned>(mask);
    if (!(lanes >> self % WARP & 1)) fail("a lane shuffles that its mask does not name");
    if (!(lanes >> other % WARP & 1)) fail("a lane reads one that its mask does not name");
    struct barrier *group = &emulator->groups[self / WARP * WARP + static_cast<unsigned>(__builtin_ctz(lanes))];
    if (group->arrived == 0) group->expected = static_cast<unsigned>(__builtin_popcount(lanes)), group->lanes = lanes;
    if (group->lanes != lanes) fail("lanes that shuffle name other masks");
    emulator->words[self] = word;
    wait_at(group);
    word = emulator->words[other];
    wait_at(group);
    return word;
}

void el_emulator_check_operands(const void *code, const struct el_emulator_operand *operands, int n)
{
    for (int i = 0; i < n; i++)
        for (int k = 0; k < i; k++) {
            const struct el_emulator_operand &a = operands[i], &b = operands[k];
            if (!a.at || a.at != b.at || !(a.is_restrict || b.is_restrict) || !(a.is_written || b.is_written)) continue;
            fprintf(stderr, "emulator: %s: operands %d and %d are one, and __restrict__\n", name_of(code), k, i);
            abort();
        }
}

void el_races_found(const char *words)
{
    fail(words);
}

namespace
{

struct kernel_launch {
    cudaStream_t stream;
    const void *code;
    unsigned blocks, threads;
    std::function<void()> kernel;
};

void run_blocks(const struct kernel_launch *launch)
{
    if (!own) own.reset(new struct state());
    emulator = own.get();
    emulator->kernel = &launch->kernel;
    emulator->code = launch->code;
    emulator->threads = launch->threads;
    emulator->downwards = !emulator->downwards;
    blockDim.x = launch->threads;
    gridDim.x = launch->blocks;
    if (!launch->stream) el_races_begin();
    for (unsigned i = 0; i < launch->blocks; i++) {
        blockIdx.x = emulator->downwards ? launch->blocks - 1 - i : i;
        run_block();
    }
    el_races_end();
}

int run_launch(void *argument)
{
    auto *launch = static_cast<const kernel_launch *>(argument);
    if (!cards_is_ending(launch->stream)) run_blocks(launch);
    return 0;
}

void drop_launch(void *argument)
{
    delete static_cast<kernel_launch *>(argument);
}

} // namespace

void el_emulator_launch(void *stream, const void *code, unsigned blocks, unsigned threads,
                        const std::function<void()> &kernel)
{
    auto *made = new kernel_launch{static_cast<cudaStream_t>(stream), code, blocks, threads, kernel};
    if (cudaLaunchKernel() != 0 || cards_launch(made->stream, code, CAPABILITY, run_launch, drop_launch, made) != 0) drop_launch(made);
}
