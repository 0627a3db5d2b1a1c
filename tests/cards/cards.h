/* Cards without cards: stand-ins for CUDA's run time, cuBLAS, cuDNN, NVML (and NCCL) that are harder than a card. This
 * is what they share beside the libraries' own calls.
 *
 *     FAKE_CARDS=2 build/cards/evenload run --devices cuda:0,cuda:1 ...
 *
 * el_cuda.so is made of our own sources; its kernels run on emulated threads (tests/gpu/emulator), each stream is a
 * thread, and nothing is done before the stream comes to it. Settings, all by environment:
 *
 *     FAKE_CARDS=N           how many cards the machine has (none: no cards; a stream NULL then runs at once what it is
 *                            given, in the caller's thread: for tests of kernels alone)
 *     FAKE_CARDS_SEED=S      streams dawdle, some more than others, as S says; 0 or nothing: none does
 *     FAKE_CARDS_BYTES=B     memory of a card (default 1 GiB)
 *     FAKE_CARDS_MODEL=M     T4, V100, A100, H100 or H200 (default)
 *     FAKE_CARDS_QUEUES=N    a card has N hardware queues, which its streams share; nothing: a queue a stream, so that
 *                            what is not waited for is seen. CUDA_DEVICE_MAX_CONNECTIONS overrides it, as on a card
 *     FAKE_CARDS_NCCL=22105  what NCCL says that it is, here 2.21.5
 *     FAKE_CARDS_MIG=1       NVML knows the cards by names with "MIG-" alone
 *     FAKE_CARDS_GUEST=B     bytes that another process holds on each card, as NVML and cudaMemGetInfo tell
 *     FAKE_CARDS_FAIL=RULES  what fails: WHAT:CARD:CALL[=CODE], separated by commas
 *     FAKE_CARDS_SLOW=LIST   what takes so many milliseconds, of nvml (its start), heuristic (a call of cuDNN's),
 * launch (of a kernel, by the host) and context (its making, a card and process):
 *                            nvml=20,heuristic=1,launch=0.1,context=1000
 *     FAKE_CARDS_WRONG=LIST  what computes wrongly, separated by commas: `cudnn` (a convolution's weights' gradient is
 *                            1.03 of what it should be), `cublas` (products of f32 are in TF32 unasked), `cast`
 *                            (of a product's numbers in bf16 each two stand in the other's place)
 *     FAKE_CARDS_REPORT=F    at the end a line per card is appended to F: the most memory that was taken, what was not
 *                            given back, how many kernels, copies and waits there were (report.c)
 *     FAKE_CARDS_CALLS=F     at the end a line a call and card is appended to F: how often it was called (calls.c)
 *     CUDA_VISIBLE_DEVICES, CUDA_LAUNCH_BLOCKING, CUDA_MODULE_LOADING, CUDA_DEVICE_MAX_CONNECTIONS   as CUDA takes them
 *
 * Of a rule WHAT is a call's name (cudaMalloc; all of calls.h), `kernel` (one that is running: CODE is sticky from then
 * on; 700 if none is given), `wait` (a cudaStreamWaitEvent that does nothing, in a capture too) or `stuck` (a kernel
 * that never ends). CARD is a number (of a call: the card that the thread is set to) or `*`. CALL counts from 1; N/M
 * means the calls N, N+M, N+2M, ... Tests in the same process can also let streams take turns (cards_set_policy).
 *
 * What a card would do to a wrong program is an error here, or an end with a line that begins with "fakecards:": device
 * memory that the host touches, or a kernel of another card without peer access (by protection keys, where the machine
 * has them); a stream that is not of the thread's current device; memory that was freed or never written (it reads as
 * NaN). The thread sanitizer is told of the orders that CUDA promises, and of no others: the fakes' own files are
 * compiled without it.
 */
#pragma once

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { CARDS_MAX = 8 };

/* Puts `run(argument)` behind what the stream has. It is called exactly once, on the stream's thread, and may block. A
 * result other than 0 is a CUDA error of the whole card from then on. After such an error, and at the process's end, it
 * is called all the same, with cards_is_ending(stream): then it frees its argument and does nothing else.
 * It may touch the memory of every card of this process. `drop`: as below, or NULL: run frees the argument.
 * Result: 0, or the error of the call (the stream's card has failed, is not the thread's current one, ...). */
int cards_enqueue(cudaStream_t stream, int (*run)(void *argument), void (*drop)(void *argument), void *argument);

/* As above, for a kernel: it may touch its own card's memory and that of peers whose access was enabled. `code` names
 * the kernel: at the first launch of each the caller waits for the whole card, as lazy loading does. `capability` is
 * the lowest that it was built for: 75, or 0 for a library, which has it for all.
 * `drop` frees the argument, so that a graph may run it again and again; what has none can be in no graph. */
int cards_launch(cudaStream_t stream, const void *code, int capability, int (*run)(void *argument),
                 void (*drop)(void *argument), void *argument);

/* Where the launch of a kernel of ours begins, so that it can fail as a call: 0. */
int cudaLaunchKernel(void);

/* Of which the calling thread runs an item: a graph's nodes are in that of its launch. */
cudaStream_t cards_running_stream(void);

/* Whether the stream captures; and makes its capture fail, as what is not permitted in one does. Returns `code`. */
bool cards_is_capturing(cudaStream_t stream);
int cards_break_capture(cudaStream_t stream, int code);

/* For items that block: whether they should give up, since the card has failed or the process ends. Ask at least every
 * few milliseconds. */
bool cards_is_ending(cudaStream_t stream);

/* For items that wait for those of other streams, under a policy: while it waits; what it waits for, that a stream has
 * finished so many items; how many it was given so far. */
void cards_turn_block(cudaStream_t stream, bool blocked);
void cards_want(cudaStream_t stream, int number);
int cards_stream_items(cudaStream_t stream);

/* The calling thread's current device, and the one of a stream; -1 for NULL. Numbers as this process counts. */
int cards_thread_device(void);
int cards_stream_device(cudaStream_t stream);

/* The device whose memory `address` is in, with the bytes left behind it in its allocation; -1: none. */
int cards_device_of(const void *address, size_t *left_p);

/* Memory that a library takes for itself: counted, nothing is mapped. Errors: cudaErrorMemoryAllocation. */
int cards_library_take(int device, size_t bytes);
void cards_library_give(int device, size_t bytes);

/* Whether FAKE_CARDS_FAIL lets this call fail; counts it. `*code_p` is changed only where the rule has a code. */
bool cards_fails(const char *what, int device, int *code_p);

/* Takes as long as FAKE_CARDS_SLOW says. */
void cards_dawdle(const char *what);
/* Whether FAKE_CARDS_WRONG has it. */
bool cards_is_wrong(const char *what);

/* Of FAKE_CARDS_SEED; 0: none. */
uint64_t cards_seed(void);

/* Orders for the thread sanitizer: what comes before a release of an address comes before what follows an acquire of
 * it. Who makes one stream wait for another says so by these; nothing else of the fakes does. */
void cards_release(void *address);
void cards_acquire(void *address);

/* For tests in the same process: what a device has (0 of all of it when everything was closed, but for the context's
 * bytes), and has done so far. */
struct cards_counts {
    size_t most_bytes, left_bytes;               /* of cudaMalloc: the most since cards_forget_most(), and now */
    size_t library_bytes;                        /* contexts and libraries */
    size_t pinned_bytes;                         /* the host's, of the whole process */
    int streams, events, kernels, copies, waits; /* what a capture noted was no launch, copy or wait */
    int graphs, synchronisations; /* launches of graphs; times that the host waited for a stream or an event */
};
void cards_count(int device, struct cards_counts *counts_p);
void cards_forget_most(void);
/* In the place of FAKE_CARDS_SEED, for streams made from now on; of FAKE_CARDS_FAIL, with calls counted from 1 again;
 * and whether cards reach each other's memory. While no stream is there. */
void cards_set_seed(uint64_t seed);
void cards_set_failures(const char *rules);
void cards_set_peer(bool peer);
/* Streams stand still until somebody waits for them, and then the one that is waited for goes on, every other first, or
 * any, by the seed (turns.c). */
enum cards_policy { CARDS_FREE, CARDS_LAZY, CARDS_OTHERS_FIRST, CARDS_RANDOM, CARDS_POLICIES };
void cards_set_policy(enum cards_policy policy, uint64_t seed);

/* For the kernels' own test: cuDNN's descriptors not yet destroyed, convolutions done; and whether its heuristics name
 * only algorithms that may not be taken. */
int cards_cudnn_descriptors(void);
int cards_cudnn_convolutions(void);
void cards_cudnn_set_useless(bool useless);
/* What convolutions answer instead of computing; 0: they compute. */
void cards_cudnn_set_refusal(int status);

#ifdef __cplusplus
}
#endif
