/* A trace of anyone's, and the figures made of it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "profiles/kineto.h"
#include "tests/fuzz/fuzz.h"

struct pieces {
    const uint8_t *at;
    size_t left, piece;
};

static ptrdiff_t read_piece(void *context, char *to, size_t most)
{
    struct pieces *pieces = context;
    size_t n = pieces->left < pieces->piece ? pieces->left : pieces->piece;
    if (n > most) n = most;
    memcpy(to, pieces->at, n);
    pieces->at += n;
    pieces->left -= n;
    return (ptrdiff_t)n;
}

/* Whatever pieces it comes in, by the input's size: it is read or refused alike. */
static void read_in_pieces(const uint8_t *data, size_t size, bool is_one)
{
    struct pieces pieces = {data, size, size % 1500 + 1};
    struct el_kineto_trace trace;
    bool read = fuzz_status(el_kineto_read_from(&(struct el_kineto_source){read_piece, &pieces}, "trace", &trace));
    fuzz_expect(read == is_one, "pieces make no difference");
    if (read) el_kineto_free(&trace);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct el_kineto_trace trace;
    bool is_one = fuzz_status(el_kineto_read((const char *)data, size, "trace", &trace));
    read_in_pieces(data, size, is_one);
    if (!is_one) return 0;
    for (size_t i = 0; i < trace.n_lanes; i++) {
        struct el_kineto_figures f;
        if (!fuzz_status(el_kineto_figures(&trace.lanes[i], &f))) continue;
        if (!(f.idle_s > -1e-6) || !(f.window_s + 1e-6 >= f.compute_s) || !(f.exposed_s > -1e-6)) abort();
    }
    el_kineto_free(&trace);
    return 0;
}
