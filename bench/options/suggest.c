/* What did the user mean? Another program's name for one of ours, or the nearest known word to an unknown one, by edit
 * distance. Callers bring the words. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "bench/base/text.h"
#include "bench/options/options.h"

enum { WORD_MAX = 48 };

/* Of Lightning and accelerate, nccl-tests, PyTorch, its examples and trainers. Letters in lower case and - for _ :
 * names of launchers and of Python have either. */
static const struct el_foreign_name foreign_names[] = {
    {"strategy", "mode"},
    {"strategy", "modes"},
    {"accumulate-grad-batches gradient-accumulation-steps", "accumulate"},
    {"max-epochs num-train-epochs num-epochs", "epochs"},
    {"max-steps", "steps"},
    {"warmup-steps", "warmup"},
    {"learning-rate", "lr"},
    {"max-grad-norm clip-grad-norm gradient-clip-val", "clip"},
    {"per-device-train-batch-size", "batch-per-device"},
    {"num-workers dataloader-num-workers", "workers"},
    {"prefetch-factor", "prefetch"},
    {"arch", "model"},
    {"output-dir log-dir", "out"},
    {"backend dist-backend", "comm"},
    {"amp autocast mixed-precision", "precision"},
    {"reshard-after-forward", "reshard"},
    {"bucket-cap-mb", "bucket-mb"},
    {"gradient-as-bucket-view", "bucket-view"},
    {"find-unused-parameters", "find-unused"},
    {"reduce-dtype ddp-comm-hook", "comm-hook"},
    {"n-microbatches chunks", "micro"},
    {"float32 f32", "float"},
    {"float64 f64", "double"},
    {"float32 fp32 float", "f32"},
    {"float64 fp64 double", "f64"},
    {"bf16-true", "bf16-pure"},
    {"dataparallel", "dp"},
    {"distributeddataparallel", "ddp"},
    {"zero-redundancy-optimizer deepspeed-stage-1", "zero1"},
    {"deepspeed-stage-2", "zero2"},
    {"fsdp fully-shard deepspeed-stage-3", "zero3"},
    {"gpu", "cuda"},
    {"gloo", "tcp"},
    {NULL, NULL},
};

const struct el_foreign_name *el_foreign_names(void)
{
    return foreign_names;
}

/* What launchers, nccl-tests and training scripts take and we do not, and what to do. */
static const struct el_foreign_name foreign_options[] = {
    {"batch-size", "--batch is of all devices together, --batch-per-device of each"},
    {"nproc-per-node num-processes world-size num-gpus ngpus gpus gpu gpu-ids g",
     "write --devices cuda:N for N GPUs, or --devices N for N CPU devices"},
    {"nnodes num-nodes num-machines node-rank machine-rank standalone rdzv-backend rdzv-endpoint rdzv-id",
     "it is the launcher's: torchrun --nnodes N ... --no_python evenload run ..."},
    {"np hostfile", "it is the launcher's: mpirun -np N evenload run ..., or --devices N for ranks of this host"},
    {"local-rank rank master-addr master-port",
     "leave it out: a rank takes its place from the variables of mpirun or torchrun ('evenload help environment')"},
    {NULL, NULL},
};

/* nccl-tests' flags that `comm` does not take, and why. */
static const struct el_foreign_name nccl_tests_flags[] = {
    {"parallel-init p", "all ranks open their communicators at the same time: leave it out"},
    {"per-iter-timing I per-iter-skip K",
     "each call is timed: comm.json has all times, without those of --warmup_iters: leave it out"},
    {"cudagraph G", "the calls of a size are one program, queued before the first begins: leave it out"},
    {"report-cputime C", "the time is that of the operation, by its stream, and not the host's: leave it out"},
    {"local-register R",
     "the in-place columns use memory that the communicator registered, where it can: leave it out"},
    {"device-implementation D device-cta-count V",
     "it chooses kernels that nccl-tests brings with it, and evenload has none of them: leave it out"},
    {"cta-policy x", "it is a setting of NCCL: set NCCL_CTA_POLICY"},
    {"stream-null y", "each communicator has a stream of its own: leave it out"},
    {"report-timestamps S", "comm.json has the time of the run: leave it out"},
    {"output-file J", "comm.json in the folder of --out has every call, and --json prints it: leave it out"},
    {"memory M", "'evenload watch evenload comm ...' measures the memory of the processes"},
    {"unalign u", "buffers begin at multiples of 256 bytes, as allocators of frameworks give them: leave it out"},
    {NULL, NULL},
};

const struct el_foreign_name *el_nccl_tests_flags(void)
{
    return nccl_tests_flags;
}

const struct el_foreign_name *el_foreign_options(void)
{
    return foreign_options;
}

static int fold(char c)
{
    return c == '_' ? '-' : tolower((unsigned char)c);
}

/* Whether it is one of theirs; a single letter has its case. */
static bool is_among(const char *word, const char *theirs)
{
    for (const char *at = theirs; *at; at += strcspn(at, " "), at += *at == ' ') {
        const char *a = word;
        while (*a && (*a == *at || (word[1] && fold(*a) == fold(*at)))) a++, at++;
        if (!*a && (!*at || *at == ' ')) return true;
    }
    return false;
}

static const char *translate(const char *word, const char *const *names)
{
    for (const struct el_foreign_name *row = foreign_names; row->theirs; row++)
        for (const char *const *name = names; *name && is_among(word, row->theirs); name++)
            if (!strcmp(*name, row->ours)) return *name;
    return NULL;
}

/* Optimal string alignment: insertions, deletions, replacements and swaps of neighbours cost 1 each. */
static int distance(const char *a, const char *b)
{
    int n = (int)strlen(a), m = (int)strlen(b);
    int d[WORD_MAX + 1][WORD_MAX + 1];
    if (n > WORD_MAX || m > WORD_MAX) return WORD_MAX;
    for (int i = 0; i <= n; i++) d[i][0] = i;
    for (int j = 0; j <= m; j++) d[0][j] = j;
    for (int i = 1; i <= n; i++)
        for (int j = 1; j <= m; j++) {
            int replaced = d[i - 1][j - 1] + (fold(a[i - 1]) != fold(b[j - 1]));
            d[i][j] = 1 + (d[i - 1][j] < d[i][j - 1] ? d[i - 1][j] : d[i][j - 1]);
            if (replaced < d[i][j]) d[i][j] = replaced;
            if (i > 1 && j > 1 && fold(a[i - 1]) == fold(b[j - 2]) && fold(a[i - 2]) == fold(b[j - 1]) &&
                d[i - 2][j - 2] + 1 < d[i][j])
                d[i][j] = d[i - 2][j - 2] + 1;
        }
    return d[n][m];
}

const char *el_suggest(const char *word, const char *const *names)
{
    const char *best = translate(word, names);
    if (best) return best;
    int length = (int)strlen(word), least = length / 3 < 1 ? 1 : length / 3;
    if (least > 3) least = 3;
    for (; *names; names++) {
        int far = distance(word, *names);
        if (far < least || (far == least && !best)) best = *names, least = far;
    }
    return best;
}

static const char *find_advice(const struct el_foreign_name *row, const char *option)
{
    while (row->theirs && !is_among(option, row->theirs)) row++;
    return row->ours;
}

const char *el_suggest_instead(unsigned command, const char *option)
{
    const char *ours = command & EL_CMD_COMM ? find_advice(nccl_tests_flags, option) : NULL;
    return ours ? ours : find_advice(foreign_options, option);
}

enum el_status el_fail_unknown(const char *what, const char *word, const char *const *names)
{
    const char *near = el_suggest(word, names);
    char list[256] = "";
    for (const char *const *name = names; *name; name++)
        el_text_append(list, sizeof list, "%s%s", *list ? ", " : "", *name);
    if (near) return el_fail(EL_ERR_INVALID, "unknown %s '%s': did you mean '%s'? (%s)", what, word, near, list);
    return el_fail(EL_ERR_INVALID, "unknown %s '%s' (there is: %s)", what, word, list);
}
