/* `--show-steps`: an algorithm's messages as textbooks draw them, step by step, and what they come to in bytes. From
 * rounds.h, which is what the communicators carry: nothing is sent here. */
#include <stdlib.h>
#include <string.h>

#include "bench/base/text.h"
#include "bench/comm/wire.h"
#include "runtime/comm/rounds.h"

/* A stretch of LINE elements is one cell of the picture; of each cell the ranks whose data are in it. */
enum { DRAWN_RANKS_MAX = 8, LINE = 16, CELLS = 2 * DRAWN_RANKS_MAX, CELL_BYTES = 24, SIDES = EL_SIDE_SCRATCH + 1 };

struct picture {
    struct el_comm_shape shape; /* of rank 0 */
    const struct el_comm_verb_row *row;
    uint32_t cells[DRAWN_RANKS_MAX][SIDES][CELLS];
};

static struct el_comm_shape shape_at(const struct picture *p, int rank)
{
    struct el_comm_shape shape = p->shape;
    shape.rank = rank;
    return shape;
}

static uint32_t *cell(struct picture *p, int rank, struct el_comm_slice at, size_t k)
{
    size_t i = at.begin / LINE + k;
    return &p->cells[rank][at.side][i < CELLS ? i : CELLS - 1];
}

/* What each rank begins with, and copies within its own memory. */
static void begin(struct picture *p)
{
    size_t own = p->row->all_data ? (size_t)p->shape.size : p->shape.count / LINE;
    for (int r = 0; r < p->shape.size; r++) {
        struct el_comm_shape shape = shape_at(p, r);
        struct el_comm_copy copy = el_comm_own_copy(&shape);
        for (size_t i = 0; i < own && i < CELLS && !(p->row->data_on_root && r != p->shape.root); i++)
            p->cells[r][EL_SIDE_DATA][i] = 1U << r;
        for (size_t k = 0; k < copy.count / LINE; k++) *cell(p, r, copy.to, k) = *cell(p, r, copy.from, k);
    }
}

/* All messages of a round go at once: what is sent is what was there before. */
static void step(struct picture *p, int round)
{
    struct picture before = *p;
    for (int r = 0; r < p->shape.size; r++) {
        struct el_comm_shape mine = shape_at(p, r);
        struct el_comm_message in = el_comm_round(&mine, round).receive;
        if (in.peer < 0) continue;
        struct el_comm_shape theirs = shape_at(p, in.peer);
        struct el_comm_message out = el_comm_round(&theirs, round).send;
        for (size_t k = 0; k < in.count / LINE; k++) {
            uint32_t own = in.own.side == EL_SIDE_NONE ? 0 : *cell(&before, r, in.own, k);
            *cell(p, r, in.at, k) = own | *cell(&before, in.peer, out.at, k);
        }
    }
}

/* "0+3", "all". */
static void name_ranks(uint32_t ranks, int n, char text[CELL_BYTES])
{
    text[0] = 0;
    if (n > 2 && ranks == (1U << n) - 1) snprintf(text, CELL_BYTES, "all");
    for (int r = 0; r < n && strcmp(text, "all"); r++)
        if (ranks >> r & 1) el_text_append(text, CELL_BYTES, "%s%d", *text ? "+" : "", r);
    if (!*text) snprintf(text, CELL_BYTES, ".");
}

/* A row a rank: of each part whose data are in it, in the result, or while nothing is there in its own data. */
static void draw(const struct picture *p, FILE *out)
{
    int n = p->shape.size;
    size_t parts = p->row->all_result ? (size_t)n : p->shape.count / LINE;
    for (int r = 0; r < n; r++) {
        fprintf(out, "      rank %d", r);
        for (size_t i = 0; i < parts; i++) {
            char text[CELL_BYTES];
            uint32_t result = p->cells[r][EL_SIDE_RESULT][i];
            bool same = p->row->all_data == p->row->all_result;
            name_ranks(result || !same || p->row->all_data ? result : p->cells[r][EL_SIDE_DATA][i], n, text);
            fprintf(out, "%10s", text);
        }
        fputc('\n', out);
    }
}

static void draw_messages(const struct picture *p, int round, FILE *out)
{
    const char *before = "";
    fprintf(out, "  step %d: ", round + 1);
    for (int r = 0; r < p->shape.size; r++) {
        struct el_comm_shape shape = shape_at(p, r);
        struct el_comm_message message = el_comm_round(&shape, round).send;
        if (message.peer < 0 || message.count == 0) continue;
        struct el_comm_shape theirs = shape_at(p, message.peer);
        bool sums = el_comm_round(&theirs, round).receive.own.side != EL_SIDE_NONE;
        fprintf(out, "%s%d %s part %d to %d", before, r, sums ? "adds" : "sends", message.part, message.peer);
        before = ", ";
    }
    fputc('\n', out);
}

static void draw_all(const struct el_wire_curve *curve, const struct el_wire_plan *plan, FILE *out)
{
    struct picture *p = calloc(1, sizeof *p);
    if (!p) return;
    p->row = el_comm_verb_row(curve->operation->verb);
    bool chunks = curve->operation->verb == EL_COMM_ALL_REDUCE;
    p->shape = (struct el_comm_shape){.verb = curve->operation->verb,
                                      .algorithm = curve->algorithm,
                                      .size = plan->n,
                                      .root = plan->options->root,
                                      .count = (size_t)LINE * (size_t)(chunks ? plan->n : 1),
                                      .element_bytes = 4};
    int n = el_comm_rounds(&p->shape);
    el_text_say("", "", EL_REPORT_COLUMNS, out,
                "%s, %s: %d ranks, %d steps. After each step: whose data each part of each rank has.",
                curve->operation->name, el_comm_algorithm_name(curve->algorithm), plan->n, n);
    begin(p);
    for (int round = 0; round < n; round++) {
        draw_messages(p, round, out);
        step(p, round);
        draw(p, out);
    }
    fputc('\n', out);
    free(p);
}

/* What a rank sends at most, in all and in one step. */
static void count_bytes(const struct el_wire_curve *curve, const struct el_wire_plan *plan, FILE *out)
{
    size_t width = el_dtype_bytes(plan->options->dtype);
    uint64_t bytes = plan->sizes[plan->n_sizes - 1], most = 0, most_in = 0, all = 0, step_most = 0;
    struct el_comm_shape shape = {.verb = curve->operation->verb,
                                  .algorithm = curve->algorithm,
                                  .size = plan->n,
                                  .root = plan->options->root,
                                  .element_bytes = width};
    char cells[4][EL_FIGURE_BYTES];
    shape.count = el_wire_count(shape.verb, bytes, width, plan->n);
    for (shape.rank = 0; shape.rank < plan->n; shape.rank++) {
        struct el_comm_traffic traffic = el_comm_rounds_traffic(&shape);
        all += traffic.sent_bytes;
        if (traffic.sent_bytes > most) most = traffic.sent_bytes;
        if (traffic.received_bytes > most_in) most_in = traffic.received_bytes;
        for (int i = 0; i < el_comm_rounds(&shape); i++) {
            struct el_comm_message message = el_comm_round(&shape, i).send;
            if (message.peer >= 0 && message.count * width > step_most) step_most = message.count * width;
        }
    }
    fprintf(out, "  %-16s%-10s%6d%16s%18s%18s%14s\n", curve->operation->name, el_comm_algorithm_name(curve->algorithm),
            el_comm_rounds(&shape), el_text_mib((double)step_most, cells[0]), el_text_mib((double)most, cells[1]),
            el_text_mib((double)most_in, cells[2]), el_text_mib((double)all, cells[3]));
}

void el_wire_show_steps(const struct el_wire_plan *plan, FILE *out)
{
    char mib[EL_FIGURE_BYTES];
    for (int c = 0; c < plan->n_curves && plan->n <= DRAWN_RANKS_MAX; c++) draw_all(&plan->curves[c], plan, out);
    if (plan->n > DRAWN_RANKS_MAX)
        fprintf(out, "Steps are drawn for up to %d ranks, here are %d: --devices sim:%d shows them.\n\n",
                DRAWN_RANKS_MAX, plan->n, DRAWN_RANKS_MAX);
    fprintf(out, "Bytes of %s MiB of data on %d ranks, in MiB:\n",
            el_text_mib((double)plan->sizes[plan->n_sizes - 1], mib), plan->n);
    fprintf(out, "  %-16s%-10s%6s%16s%18s%18s%14s\n", "operation", "algorithm", "steps", "largest message",
            "a rank sends", "a rank receives", "total");
    for (int c = 0; c < plan->n_curves; c++) count_bytes(&plan->curves[c], plan, out);
    fputs("The rank that sends or receives most takes the longest, and sets the time.\n", out);
}
