/* Bytes of a ring's operations. */
#include "runtime/comm/ring.h"

struct el_comm_traffic el_ring_traffic(const struct el_comm_shape *shape)
{
    uint64_t all = (uint64_t)shape->count * shape->element_bytes;
    int n = shape->size;
    if (shape->verb == EL_COMM_BROADCAST) {
        int place = el_ring_place(shape->rank, shape->root, n);
        return (struct el_comm_traffic){place == n - 1 ? 0 : all, place == 0 ? 0 : all};
    }
    uint64_t chunk[3]; /* of this rank and the two after it: the ones it does not send, or get, in one of the rounds */
    for (int i = 0; i < 3; i++) {
        int at = (shape->rank + i) % n;
        size_t begin = el_comm_chunk(shape->count, n, at);
        chunk[i] = (el_comm_chunk(shape->count, n, at + 1) - begin) * shape->element_bytes;
    }
    return (struct el_comm_traffic){2 * all - chunk[1] - chunk[2], 2 * all - chunk[0] - chunk[1]};
}
