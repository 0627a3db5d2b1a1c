/* Who is with whom when a group splits: arithmetic of colors and keys, for backends whose members can tell each other a
 * number. */
#include "runtime/comm/comm_ops.h"

/* Numbers in the order of their keys, whatever the sign. */
static uint32_t ordered(int value)
{
    return (uint32_t)value ^ UINT32_C(0x80000000);
}

uint64_t el_comm_split_word(const struct el_comm_split *split)
{
    return (uint64_t)ordered(split->color) << 32 | ordered(split->key);
}

/* Ranks of one color by key; equal keys by rank. */
void el_comm_split_plan(const uint64_t *words, int n, int rank, struct el_comm_split *split, int *members)
{
    int size = 0;
    split->rank = split->size = 0;
    if (split->color < 0) return;
    for (int r = 0; r < n; r++) {
        if (words[r] >> 32 != words[rank] >> 32) continue;
        int at = size++;
        for (; at > 0 && words[members[at - 1]] > words[r]; at--) members[at] = members[at - 1];
        members[at] = r;
    }
    while (members[split->rank] != rank) split->rank++;
    split->size = size;
}
