/* Turns: under a policy a stream stands still until somebody waits for it, and then one stream at a time goes on by one
 * item: the one that is waited for, every other first, or any. So a program in which a wait is missing gives wrong
 * numbers under one of them, whatever the machine's speed. A stream whose item waits for others lets them have turns.
 */
#include <stdlib.h>

#include "tests/cards/machine.h"

enum { BUSY_MAX = 256 };

static enum cards_policy policy;
static uint64_t chance;
static struct cards_lock lock; /* of all that follows, and of streams' wanted and blocked */
static struct CUstream_st *busy[BUSY_MAX], *chosen;
static int n_busy;
static atomic_int changes;

void cards_set_policy(enum cards_policy wanted, uint64_t seed)
{
    policy = wanted;
    chance = seed;
}

static bool has_work(const struct CUstream_st *stream)
{
    return atomic_load(&stream->finished) != atomic_load(&stream->enqueued);
}

static bool is_wanted(const struct CUstream_st *stream)
{
    return stream->wanted - atomic_load(&stream->finished) > 0;
}

/* Whether `stream` should have the turn that `other` would get; `n` could by now. */
static bool goes_before(const struct CUstream_st *stream, const struct CUstream_st *other, int n)
{
    if (policy == CARDS_RANDOM) return cards_random(&chance) % (uint64_t)n == 0;
    if (policy == CARDS_OTHERS_FIRST && is_wanted(stream) != is_wanted(other)) return is_wanted(other);
    return stream->index > other->index;
}

/* With the lock: gives the turn that nobody has. */
static void choose(void)
{
    bool any = false;
    int n = 0;
    for (int i = 0; i < n_busy; i++) any = any || is_wanted(busy[i]);
    for (int i = 0; i < n_busy && any && (n > 0 || !chosen); i++) {
        if (busy[i]->blocked || (policy == CARDS_LAZY && !is_wanted(busy[i]))) continue;
        n++;
        if (n == 1 || goes_before(busy[i], chosen, n)) chosen = busy[i];
    }
    if (n == 0) return;
    atomic_fetch_add(&changes, 1);
    cards_wake(&changes);
}

void cards_turn_enqueued(struct CUstream_st *stream)
{
    int at = 0;
    if (!policy) return;
    cards_lock(&lock);
    while (at < n_busy && busy[at] != stream) at++;
    if (at == BUSY_MAX) abort();
    if (at == n_busy && has_work(stream)) busy[n_busy++] = stream; /* else it was quicker */
    choose();
    cards_unlock(&lock);
}

void cards_turn_begin(struct CUstream_st *stream)
{
    while (policy && !cards_is_ending(stream)) {
        int seen = atomic_load(&changes);
        cards_lock(&lock);
        bool mine = chosen == stream;
        cards_unlock(&lock);
        if (mine) return;
        cards_sleep(&changes, seen);
    }
}

void cards_turn_end(struct CUstream_st *stream)
{
    if (!policy) return;
    cards_lock(&lock);
    if (chosen == stream) chosen = NULL;
    for (int i = 0; i < n_busy; i++)
        if (busy[i] == stream && !has_work(stream)) busy[i] = busy[--n_busy];
    choose();
    cards_unlock(&lock);
}

void cards_turn_block(cudaStream_t stream, bool blocked)
{
    if (!policy || !stream) return;
    cards_lock(&lock);
    stream->blocked = blocked;
    if (blocked && chosen == stream) chosen = NULL;
    choose();
    cards_unlock(&lock);
}

void cards_want(cudaStream_t stream, int number)
{
    if (!policy) return;
    cards_lock(&lock);
    if (number - stream->wanted > 0) stream->wanted = number;
    choose();
    cards_unlock(&lock);
}

int cards_stream_items(cudaStream_t stream)
{
    return atomic_load(&stream->enqueued);
}
