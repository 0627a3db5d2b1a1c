/* What the files of the fake run time share. Nobody else includes it.
 *
 * These files are compiled without the thread sanitizer: their locks and counters are atomics and futexes, which it
 * does not see, so that it knows only the orders that cards_release() and cards_acquire() tell it. */
#pragma once

#include <stdatomic.h>

#include "tests/cards/cards.h"

struct cards_lock {
    atomic_int word; /* 0 free, 1 taken, 2 taken and waited for */
};
void cards_lock(struct cards_lock *lock);
void cards_unlock(struct cards_lock *lock);
/* Sleep while *word is `value`, for 5 ms at most; and wake all who do. */
void cards_sleep(atomic_int *word, int value);
void cards_wake(atomic_int *word);

/* A point in a stream's work: an event's record. */
struct cards_mark {
    atomic_int done;
    int64_t at_ns;
    struct CUstream_st *stream; /* it is there when this one has finished so many items */
    int number;
};
struct cards_mark *cards_mark_new(void);

struct cards_item {
    int (*run)(void *argument);
    void (*drop)(void *argument); /* NULL: run does it */
    void *argument;
    bool kernel;
    int ticket; /* in its hardware queue */
    struct cards_item *next;
};

/* A card's hardware queue: one item of those that its streams were given at a time, in the order of the calls. Harder
 * than a card, where a kernel lets the next go when it has begun. */
enum { CARDS_QUEUES_MAX = 32 };
struct cards_queue {
    struct cards_lock lock; /* of the order in which streams and queue get items */
    int tickets;
    atomic_int served;
};

/* Behind what of a graph something comes: numbers of nodes. */
enum { CARDS_TIPS_MAX = 16 };
struct cards_tips {
    int n, ids[CARDS_TIPS_MAX];
};

/* Kept when it was destroyed, for whoever still waits for it. */
struct CUstream_st {
    int device, index; /* the index counts the streams of the process */
    struct cards_lock lock;
    struct cards_item *first, **last;
    atomic_int enqueued, finished, gone;
    uint64_t random;
    bool slow, blocked;            /* ..., an item of its waits for others */
    int wanted;                    /* how many items somebody waits for */
    struct cards_capture *capture; /* NULL: what it is given is done */
    struct cards_tips tips;        /* in a capture: what its next node comes behind */
    struct cards_queue *queue;     /* NULL: its own */
    struct CUstream_st *next;      /* of the card */
};

struct CUevent_st {
    int device;
    bool timed;
    struct cards_lock lock;
    struct cards_mark *mark; /* the last record's; NULL: none yet */
    uint64_t captured;       /* the number of the capture that the last record was in; 0: in none */
    struct cards_tips tips;
};

enum { CARDS_KERNELS_MAX = 512 };

struct cards_card {
    int number; /* the machine's */
    bool open;  /* has a context */
    atomic_int error;
    atomic_uint peers; /* bit by device: its memory may be touched by kernels of this card */
    int key;           /* of memory protection; 0: none */
    size_t used_bytes, most_bytes, taken_bytes, library_bytes; /* all; the most of taken; cudaMalloc; libraries */
    struct cards_lock lock;                                    /* of streams and loaded */
    struct CUstream_st *streams;
    struct cards_queue queues[CARDS_QUEUES_MAX];
    const void *loaded[CARDS_KERNELS_MAX];
    int n_loaded;
    atomic_int n_streams, n_events, n_streams_made, n_events_made, n_kernels, n_copies, n_waits, n_blocked, n_graphs,
        n_synchronisations;
};

struct cards_model {
    const char *word, *name;
    int major, minor;
};

struct cards_machine {
    int n_machine, n_cards; /* all, and those that this process sees */
    struct cards_card cards[CARDS_MAX];
    size_t bytes, guest_bytes, pinned_bytes;
    bool peer, mig, eager, blocking;
    uint64_t seed;
    const struct cards_model *model;
    atomic_int ending, stuck; /* ..., kernels that do not end */
    struct cards_lock lock;   /* of memory and its counts */
};

/* Read from the environment at first use. */
struct cards_machine *cards_machine(void);
/* Hardware queues of a card; 0: each stream has its own. */
int cards_queues(void);
bool cards_are_there(void);

/* Keeps the code as the thread's last error, and returns it. */
cudaError_t cards_error(int code);
/* What a call of the current device begins with: its context, its sticky error. */
int cards_begin(int device);
/* Waits for all that the card's streams have now. Tells the sanitizer nothing. */
void cards_wait_idle(struct cards_card *card);
void cards_wait_stream(struct CUstream_st *stream);
int cards_enqueue_item(cudaStream_t stream, bool kernel, int (*run)(void *argument), void (*drop)(void *argument),
                       void *argument);

/* capture.c. Each returns 0 where nothing is wrong, else the code, kept as the last error, and the capture has failed.
 */
/* Notes what a capturing stream is given. */
int cards_note(cudaStream_t stream, bool kernel, int (*run)(void *argument), void (*drop)(void *argument),
               void *argument);
/* An event's record in a capturing stream; and a wait where the stream captures, or the event was recorded in one. */
int cards_note_record(cudaEvent_t event, cudaStream_t stream);
int cards_note_wait(cudaStream_t stream, cudaEvent_t event);
/* What a thread may not call while it captures, but for relaxed mode: memory calls, a look at an event. */
int cards_unsafe(void);
/* What may not be done to a stream, or an event, of a capture. */
int cards_not_captured(cudaStream_t stream, cudaEvent_t event);
/* A stream that captures nothing is given work by a thread that captures: a card would do it at once. */
int cards_not_joined(cudaStream_t stream);

/* memory.c: which cards' memory the calling thread may touch: bits by device. */
void cards_open_memory(unsigned devices);
bool cards_is_pinned(const void *address);
/* What this process has taken of it, with contexts and libraries. */
size_t cards_held_bytes(const struct cards_card *card);

/* turns.c. A stream was given an item; it may begin one; it has ended one. */
void cards_turn_enqueued(struct CUstream_st *stream);
void cards_turn_begin(struct CUstream_st *stream);
void cards_turn_end(struct CUstream_st *stream);

int64_t cards_now_ns(void);
uint64_t cards_random(uint64_t *state);
/* "GPU-fa0b...", as CUDA and NVML name it. Returns its length. */
size_t cards_name(int number, char name[48]);
