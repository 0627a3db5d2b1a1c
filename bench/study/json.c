/* A study as JSON: everything that report.c prints, and the tags. MiB where it was published so, bytes where it
 * is ours. */
#include "bench/base/jvalue.h"
#include "bench/study/study.h"

static json_t *numbers(const double *values, int n)
{
    json_t *list = json_array();
    for (int i = 0; i < n; i++) json_array_append_new(list, el_json_real(values[i]));
    return list;
}

static json_t *published(const struct el_study *study)
{
    json_t *rows = json_array(), *lines = json_array();
    for (int i = 0; i < EL_STUDY_ROWS; i++)
        json_array_append_new(rows, json_pack("{s:I, s:o}", "global_batch", (json_int_t)study->rows[i].global_batch,
                                              "card_mib", numbers(study->rows[i].card_mib, EL_STUDY_CARDS)));
    for (int card = 0; card < EL_STUDY_CARDS; card++)
        json_array_append_new(lines,
                              json_pack("{s:o, s:o, s:o}", "at_zero_mib", el_json_real(study->lines[card].at_zero),
                                        "mib_per_local_sample", el_json_real(study->lines[card].slope), "residual_mib",
                                        el_json_real(study->lines[card].residual)));
    return json_pack("{s:o, s:o}", "rows", rows, "lines", lines);
}

static json_t *candidates(const struct el_study *study)
{
    static const char *const optimizers[] = {"sgd", "momentum", "adam"};
    json_t *list = json_array();
    for (int i = 0; i < EL_STUDY_CANDIDATES; i++) {
        const struct el_study_candidate *c = &study->candidates[i];
        json_array_append_new(
            list,
            json_pack("{s:s, s:s, s:s, s:i, s:o, s:o, s:o, s:b, s:s}", "optimizer", optimizers[c->optimizer], "sums_by",
                      c->peer_copies ? "peer copies" : "nccl", "gradients", c->kept ? "kept" : "freed", "k", c->copies,
                      "param_mib", el_json_real(c->params_mib), "context_mib", el_json_real(c->context_mib), "words",
                      el_json_real(c->words), "possible", (int)el_study_possible(c), "credible", el_study_credible(c)));
    }
    return list;
}

static json_t *account(const struct el_study_account *a)
{
    json_t *cards = json_array(), *holds = json_array();
    for (int i = 0; i < EL_STUDY_ROWS; i++) {
        json_array_append_new(cards, numbers(a->card_bytes[i], EL_STUDY_CARDS));
        json_array_append_new(holds, json_boolean(a->difference_holds[i]));
    }
    return json_pack("{s:I, s:o, s:o, s:o, s:o, s:o, s:b, s:b}", "words", (json_int_t)a->words, "card_bytes", cards,
                     "difference_error_pct", numbers(a->difference_error_pct, EL_STUDY_ROWS), "difference_holds", holds,
                     "growth_mib", numbers(a->growth_mib, EL_STUDY_CARDS), "growth_error_pct",
                     numbers(a->growth_error_pct, EL_STUDY_CARDS), "growth_holds", (int)a->growth_holds, "holds",
                     (int)a->holds);
}

static json_t *tags(const size_t bytes[EL_TAG_COUNT])
{
    json_t *object = json_object();
    for (int t = 0; t < EL_TAG_COUNT; t++)
        json_object_set_new(object, el_tag_name((enum el_tag)t), json_integer((json_int_t)bytes[t]));
    return object;
}

static json_t *band(const struct el_study_band *b)
{
    return json_pack("{s:o, s:o, s:o}", "difference_mib", numbers(b->difference_mib, 2), "param_mib",
                     numbers(b->params_mib, 2), "words", numbers(b->words, 2));
}

/* [batch][card] of the ledgers at the judged length. */
static json_t *memory(const struct el_study *study)
{
    json_t *rows = json_array();
    for (int i = 0; i < EL_STUDY_ROWS; i++) {
        json_t *cards = json_array();
        for (int card = 0; card < EL_STUDY_CARDS; card++) {
            const struct el_memory_forecast *m = &study->memory[i][card];
            json_array_append_new(cards,
                                  json_pack("{s:I, s:s, s:o, s:o, s:o}", "peak_bytes", (json_int_t)m->ledger.peak_bytes,
                                            "moment", m->moment, "at_peak_by_tag", tags(m->ledger.at_peak_by_tag),
                                            "peak_by_tag", tags(m->ledger.peak_by_tag), "unattributed_mib",
                                            el_json_real(study->unattributed_mib[i][card])));
        }
        json_array_append_new(rows, cards);
    }
    return rows;
}

static json_t *devices(const struct el_study *study)
{
    json_t *names = json_array();
    for (int card = 0; card < EL_STUDY_CARDS; card++)
        json_array_append_new(names, json_sprintf("%s:%d", study->devices[card].backend, study->devices[card].index));
    return names;
}

json_t *el_study_json(const struct el_study *study)
{
    json_t *limits = json_pack("{s:f, s:f, s:[f, f]}", "difference_pct", EL_STUDY_DIFFERENCE_PCT, "growth_pct",
                               EL_STUDY_GROWTH_PCT, "context_mib", EL_STUDY_CONTEXT_LOW_MIB, EL_STUDY_CONTEXT_HIGH_MIB);
    return json_pack("{s:s, s:o, s:o, s:b, s:o, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:s, s:o}", "study",
                     "two-cards", "devices", devices(study), "held", el_study_held_json(study), "measured",
                     (int)study->measured, "dir", el_json_string(study->dir[0] ? study->dir : NULL), "holds",
                     (int)study->reserved.holds, "published", published(study), "candidates", candidates(study),
                     "reserved", account(&study->reserved), "live", account(&study->live), "live_best",
                     account(&study->live_best), "band", band(&study->band), "memory", memory(study), "param_bytes",
                     (json_int_t)study->param_bytes, "moving_tag", el_tag_name(el_study_moving_tag(study)), "limits",
                     limits);
}
