/* --overlap, as in OSU's non-blocking collectives (osu_iallreduce, ...): each rank computes for about as long as the
 * operation takes alone. OSU computes until that time has passed; here the work is fixed and its time alone is known,
 * so a computation that communication slows down lowers the share. */
#include <math.h>

#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "bench/comm/wire.h"

/* A row takes a CPU core at most about a microsecond. */
enum { WIDTH = 128, ROWS_MAX = 16384 };

enum el_status el_wire_work_open(struct el_wire_member *member)
{
    static const char *const names[] = {"computation's data", "computation's weights", "computation's result"};
    static const size_t counts[] = {(size_t)ROWS_MAX * WIDTH, (size_t)WIDTH * WIDTH, (size_t)ROWS_MAX * WIDTH};
    const struct el_wire_data data = {.verb = EL_COMM_BROADCAST, .dtype = EL_F32, .n = 1};
    struct el_device *device = el_comm_device(member->comm);
    for (int i = 0; i < 3; i++) {
        size_t bytes = counts[i] * sizeof(float);
        EL_TRY(el_device_alloc(device, EL_TAG_WORKSPACE, bytes, names[i], &member->work[i]));
        EL_TRY(el_wire_fill(&data, 0, counts[i], el_view_of(member->work[i], 0), false));
    }
    return EL_OK;
}

void el_wire_work_close(struct el_wire_member *member)
{
    for (int i = 0; i < 3; i++) el_device_free(member->work[i]);
}

struct el_wire_work el_wire_work_of(double rows)
{
    double all = fmin(fmax(rows, 1), 1e9), kernels = ceil(all / ROWS_MAX);
    return (struct el_wire_work){.kernels = (int)kernels, .rows = (int64_t)(all / kernels)};
}

enum el_status el_wire_work_issue(const struct el_wire_member *member, struct el_program *program,
                                  const struct el_wire_work *work, int *begin_p, int *end_p)
{
    const struct el_kernel_op op = {
        .head = {.label = "computation", .phase = EL_PHASE_FORWARD},
        .op = EL_OP_LINEAR_BACKWARD_DATA,
        .dtype = EL_F32,
        .views = {el_view_of(member->work[0], 0), el_view_of(member->work[1], 0), el_view_of(member->work[2], 0)},
        .args.d = {work->rows, WIDTH, WIDTH}};
    for (int k = 0; k < work->kernels; k++)
        EL_TRY(el_program_kernel(program, el_comm_device(member->comm), EL_STREAM_COMPUTE, &op, k ? end_p : begin_p));
    if (work->kernels == 1) *end_p = *begin_p;
    return EL_OK;
}

double el_wire_overlap_pct(double pure, double compute, double overall)
{
    double pct = pure > 0 ? 100 * (1 - (overall - compute) / pure) : NAN;
    return isnan(pct) ? NAN : fmin(fmax(pct, 0), 100);
}

void el_wire_put_us(double us, FILE *out)
{
    fprintf(out, us < 100 ? "  %7.2f" : us < 10000 ? "  %7.1f" : "  %7.0f", us);
}

static bool has_overlap(const json_t *point, int place)
{
    return json_is_object(json_object_get(json_object_get(point, el_wire_places[place]), "overlap"));
}

void el_wire_print_overlap(const json_t *curve, FILE *out)
{
    static const char *const figures[] = {"time_us", "overlap.compute_us", "overlap.overall_us"};
    const json_t *points = json_object_get(curve, "points");
    if (!has_overlap(json_array_get(points, 0), EL_WIRE_APART)) return;
    fprintf(out, "# Overlap with a computation:\n#%11s%36s%36s\n", "size", "out-of-place", "in-place");
    fprintf(out, "#%11s", "");
    for (int p = 0; p < EL_WIRE_WARM_PLACES; p++)
        fprintf(out, "  %7s  %7s  %7s  %7s", "pure", "compute", "overall", "overlap");
    fprintf(out, "\n#%11s", "(B)");
    for (int p = 0; p < EL_WIRE_WARM_PLACES; p++) fprintf(out, "  %7s  %7s  %7s  %7s", "(us)", "(us)", "(us)", "(%)");
    fputc('\n', out);
    EL_EACH(point, points) {
        fprintf(out, "#%11.0f", el_json_number(point, "bytes"));
        for (int p = 0; p < EL_WIRE_WARM_PLACES; p++) {
            const json_t *place = json_object_get(point, el_wire_places[p]);
            char text[EL_FIGURE_BYTES];
            if (!has_overlap(point, p)) {
                fprintf(out, "  %7s  %7s  %7s  %7s", "N/A", "N/A", "N/A", "N/A");
                continue;
            }
            for (int f = 0; f < 3; f++) el_wire_put_us(el_json_number(place, figures[f]), out);
            fprintf(out, "  %7s", el_text_figure(el_json_number(place, "overlap.overlap_pct"), text));
        }
        fputc('\n', out);
    }
    fputs("#\n", out);
}

/* The largest size: ddp's buckets are there. */
void el_wire_say_overlap(const json_t *document, FILE *out)
{
    const json_t *curve = json_array_get(json_object_get(document, "curves"), 0);
    const json_t *points = json_object_get(curve, "points");
    const json_t *point = json_array_get(points, json_array_size(points) - 1);
    int p = has_overlap(point, EL_WIRE_IN_PLACE) ? EL_WIRE_IN_PLACE : EL_WIRE_APART;
    const json_t *place = json_object_get(point, el_wire_places[p]);
    char text[4][EL_FIGURE_BYTES];
    if (!isfinite(el_json_number(place, "overlap.overlap_pct"))) return;
    el_text_say("Does it overlap? ", "  ", out,
                "%s of %s MiB takes %s us, a computation %s us, and both together %s us: the computation hides %.0f %% "
                "of the communication.",
                el_json_text(curve, "operation", "?"), el_text_mib(el_json_number(point, "bytes"), text[0]),
                el_text_figure(el_json_number(place, "time_us"), text[1]),
                el_text_figure(el_json_number(place, "overlap.compute_us"), text[2]),
                el_text_figure(el_json_number(place, "overlap.overall_us"), text[3]),
                el_json_number(place, "overlap.overlap_pct"));
    if (json_is_true(json_object_get(document, "time_sliced")))
        fputs("  Each rank communicates on the core that computes: only the time that it waits can be hidden.\n", out);
}
