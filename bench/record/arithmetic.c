/* FLOP/s of a trial's devices: the program's own count of a step's FLOPs, beside it the count by the formula that
 * papers on language models use, and the rate of matrix products that the first is held against. */
#include <math.h>

#include "bench/base/jvalue.h"
#include "bench/record/record.h"

/* Of a token 6 N + 12 L H Q T: Chowdhery et al., "PaLM", 2022, appendix B; the 6 N are Kaplan et al.'s, "Scaling Laws
 * for Neural Language Models", 2020. N: parameters that a token is multiplied with, so all but the table of positions;
 * the table of tokens is the head's matrix, and counts once. H Q is the width. Attention is counted as if it looked at
 * all T tokens, not at those before. NAN: the model is of no tokens. */
static double formula_flops(const struct el_trial *trial, const json_t *record)
{
    const struct el_model_config *model = &trial->train.model;
    const double seq = (double)el_trial_tokens(trial), width = (double)el_model_size(model, "embed");
    const double params =
        el_json_number(record, "param_bytes") / (double)el_dtype_bytes(el_config_stored(&trial->train));
    const double a_token = 6 * (params - seq * width) + 12 * (double)el_model_size(model, "layers") * width * seq;
    return seq > 0 ? a_token * seq * (double)trial->train.global_batch : NAN;
}

json_t *el_trial_arithmetic(const struct el_trial *trial, const json_t *record, const json_t *ok)
{
    const json_t *machine = el_json_at(ok, "0.machine"); /* null: simulated, or no --machine */
    const double step_s = el_json_number(record, "step_ms.mean") / 1e3;
    const double rate = el_json_number(record, "flops_per_step") / step_s / trial->n_devices;
    const char *key = trial->train.model.precision   ? "bf16_tflop_per_s"
                      : trial->train.dtype == EL_F64 ? "f64_tflop_per_s"
                                                     : "f32_tflop_per_s";
    const double gemm = 1e12 * el_json_number(machine, key);
    return el_json_of(EL_KEY("flop_per_s_per_device", rate),
                      EL_KEY("formula_flops_per_step", formula_flops(trial, record)), EL_KEY("gemm_flop_per_s", gemm),
                      EL_KEY("gemm_pct", 100 * rate / gemm),
                      EL_KEY("gemm_source", el_json_text(machine, "source", NULL)));
}
