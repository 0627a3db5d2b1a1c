/* A device's memory timeline as JSON: a column a quantity, so that it stands on a few lines of the record.
 *
 * Nanoseconds become milliseconds here. Tags that never occur are left out: what is not listed is 0 throughout. */
#include "bench/base/jvalue.h"
#include "bench/record/record.h"

static const char *phase_of(const struct el_memory_point *point)
{
    return point->phase == EL_PHASE_COUNT ? "idle" : el_phase_name((enum el_phase)point->phase);
}

static json_t *ms(const struct el_memory_point *point)
{
    return json_real((double)point->at_ns / 1e6);
}

static bool occurs(const struct el_memory_timeline *timeline, int tag)
{
    for (int i = 0; i < timeline->n; i++) {
        if (timeline->points[i].bytes[tag] != 0) return true;
    }
    return false;
}

static json_t *bytes_by_tag(const struct el_memory_timeline *timeline)
{
    json_t *tags = json_object();
    for (int t = 0; t < EL_TAG_COUNT; t++) {
        if (!occurs(timeline, t)) continue;
        json_t *column = json_array();
        for (int i = 0; i < timeline->n; i++) json_array_append_new(column, json_integer(timeline->points[i].bytes[t]));
        json_object_set_new(tags, el_tag_name((enum el_tag)t), column);
    }
    return tags;
}

json_t *el_record_timeline(const struct el_memory_timeline *timeline)
{
    if (timeline == NULL || timeline->n == 0) return json_null();
    const struct el_memory_point *peak = &timeline->points[timeline->peak];
    json_t *times = json_array(), *phases = json_array();
    for (int i = 0; i < timeline->n; i++) {
        json_array_append_new(times, ms(&timeline->points[i]));
        json_array_append_new(phases, json_string(phase_of(&timeline->points[i])));
    }
    json_t *record = json_object();
    json_object_set_new(record, "ms", times);
    json_object_set_new(record, "phase", phases);
    json_object_set_new(record, "bytes", bytes_by_tag(timeline));
    json_object_set_new(record, "peak_ms", ms(peak));
    json_object_set_new(record, "peak_phase", json_string(phase_of(peak)));
    json_object_set_new(record, "peak_label", el_json_string(peak->label[0] == '\0' ? NULL : peak->label));
    return record;
}
