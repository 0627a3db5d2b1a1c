/* Where members of the fake NCCL meet, on the streams of fake_async.h: a collective begins when the last
 * member's stream has come to it, and holds all of them up until then; messages of a group move at once. */
#ifndef EL_TESTS_FAKE_NCCL_MEETINGS_H
#define EL_TESTS_FAKE_NCCL_MEETINGS_H

#include <stdlib.h>
#include <string.h>

#include "runtime/comm/nccl/comm_nccl.h"
#include "tests/unit/fake_async.h"

enum { FAKE_RANKS_MAX = 8 };

/* One member's part of a meeting. */
struct fake_half {
    const char *data;
    char *result;
    struct fake_stream *stream; /* NULL: not asked for yet */
    bool here;
};

/* A collective of all, or a message between two (halves[0] sends, halves[1] receives). */
struct fake_meeting {
    enum el_comm_verb verb;
    enum el_comm_reduction reduction;
    enum el_dtype dtype;
    size_t count;
    int root, n;
    int from, to, number; /* of the message; of the collective `number` alone */
    bool done;
    struct fake_half halves[FAKE_RANKS_MAX];
    struct fake_meeting *next;
};

/* What the members of one communicator share. */
struct fake_world {
    struct el_nccl_id id;
    int n, n_comms, n_splits[FAKE_RANKS_MAX];
    bool aborted;
    int issued[FAKE_RANKS_MAX], sent[FAKE_RANKS_MAX][FAKE_RANKS_MAX], received[FAKE_RANKS_MAX][FAKE_RANKS_MAX];
    struct fake_meeting *meetings;
};

/* A half in a group that has not ended, or an item's list of them. */
struct fake_place {
    struct fake_world *world;
    struct fake_meeting *meeting;
    int half;
    struct fake_stream *stream;
};

/* The meeting that is wanted: the one that others have come to, or a new one. */
static struct fake_meeting *nccl_meeting(struct fake_world *world, const struct fake_meeting *wanted)
{
    for (struct fake_meeting *m = world->meetings; m; m = m->next) {
        if (m->number != wanted->number || m->from != wanted->from || m->to != wanted->to) continue;
        if (m->verb != wanted->verb || m->count != wanted->count || m->dtype != wanted->dtype ||
            m->reduction != wanted->reduction || m->root != wanted->root)
            fake_breach("members ask NCCL for different things");
        return m;
    }
    struct fake_meeting *made = malloc(sizeof *made);
    if (!made) abort();
    *made = *wanted;
    made->next = world->meetings;
    return world->meetings = made;
}

/* ---- what moves ---- */

static double nccl_load(const char *data, enum el_dtype dtype, size_t i)
{
    return dtype == EL_F32   ? (double)((const float *)data)[i]
           : dtype == EL_F64 ? ((const double *)data)[i]
           : dtype == EL_I32 ? (double)((const int32_t *)data)[i]
                             : (double)((const uint8_t *)data)[i];
}

static void nccl_store(char *data, enum el_dtype dtype, size_t i, double value)
{
    if (dtype == EL_F32) ((float *)data)[i] = (float)value;
    if (dtype == EL_F64) ((double *)data)[i] = value;
    if (dtype == EL_I32) ((int32_t *)data)[i] = (int32_t)value;
    if (dtype == EL_U8) ((uint8_t *)data)[i] = (uint8_t)(int64_t)value;
}

static double nccl_combine(const struct fake_meeting *m, size_t i)
{
    double x = nccl_load(m->halves[0].data, m->dtype, i);
    for (int r = 1; r < m->n; r++) {
        double y = nccl_load(m->halves[r].data, m->dtype, i);
        switch (m->reduction) {
        case EL_COMM_PRODUCT:
            x *= y;
            break;
        case EL_COMM_MIN:
            x = y < x ? y : x;
            break;
        case EL_COMM_MAX:
            x = y > x ? y : x;
            break;
        default:
            x += y;
        }
    }
    return m->reduction == EL_COMM_AVERAGE ? x / m->n : x;
}

static void nccl_move(struct fake_meeting *m)
{
    size_t part = m->count * el_dtype_bytes(m->dtype);
    struct fake_half *h = m->halves;
    for (int r = 0; r < m->n; r++) {
        for (size_t i = 0; i < m->count && m->verb == EL_COMM_REDUCE_SCATTER; i++)
            nccl_store(h[r].result, m->dtype, i, nccl_combine(m, (size_t)r * m->count + i));
        for (int from = 0; from < m->n && m->verb == EL_COMM_ALL_GATHER; from++)
            memmove(h[r].result + (size_t)from * part, h[from].data, part);
        if (m->verb == EL_COMM_BROADCAST) memmove(h[r].result, h[m->root].data, part);
    }
    if (m->verb == EL_COMM_SEND) memmove(h[1].result, h[0].data, part);
    for (size_t i = 0; i < m->count && (m->verb == EL_COMM_ALL_REDUCE || m->verb == EL_COMM_REDUCE); i++) {
        double value = nccl_combine(m, i);
        for (int r = 0; r < m->n; r++)
            if (m->verb == EL_COMM_ALL_REDUCE || r == m->root) nccl_store(h[r].result, m->dtype, i, value);
    }
}

/* ---- on streams ---- */

/* An item on a stream: the calls of one group, or one call. */
struct fake_fused {
    int n;
    struct fake_place places[];
};

static bool nccl_meet(void *context, struct fake_stream **missing_p)
{
    struct fake_fused *fused = context;
    bool all = true;
    *missing_p = NULL;
    for (int p = 0; p < fused->n; p++) fused->places[p].meeting->halves[fused->places[p].half].here = true;
    for (int p = 0; p < fused->n; p++) {
        struct fake_meeting *m = fused->places[p].meeting;
        bool complete = true;
        for (int h = 0; h < m->n; h++) {
            if (m->halves[h].here) continue;
            complete = false;
            if (!*missing_p && m->halves[h].stream != fused->places[p].stream) *missing_p = m->halves[h].stream;
        }
        if (complete && !m->done && !fused->places[p].world->aborted) {
            fake_open_memory(true);
            nccl_move(m);
            fake_open_memory(false);
        }
        m->done |= complete;
        all &= m->done || fused->places[p].world->aborted;
    }
    return all;
}

static void nccl_push(const struct fake_place *places, int n)
{
    struct fake_fused *fused = malloc(sizeof *fused + (size_t)n * sizeof *places);
    if (!fused) abort();
    fused->n = n;
    memcpy(fused->places, places, (size_t)n * sizeof *places);
    struct fake_item item = {.kind = FAKE_MEET, .meet = nccl_meet, .context = fused, .is_message = true};
    for (int p = 0; p < n; p++) item.is_message &= places[p].meeting->from >= 0;
    fake_push(places->stream, &item);
}

#endif
