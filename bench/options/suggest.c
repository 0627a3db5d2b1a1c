/* What did the user mean? Another program's name for one of ours, or the nearest known word to an unknown one, by edit
 * distance. Callers bring the words. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "bench/base/text.h"
#include "bench/options/options.h"

enum { WORD_MAX = 48 };

/* Letters in lower case and - for _ : names of launchers and of Python have either. */
static const struct el_foreign_name foreign_names[] = {
    /* Lightning, accelerate */
    {"strategy", "mode"},
    {"strategy", "modes"},
    {"accumulate-grad-batches", "accumulate"},
    {"gradient-accumulation-steps", "accumulate"},
    {"max-epochs", "epochs"},
    /* nccl-tests */
    {"float32", "float"},
    {"f32", "float"},
    {"float64", "double"},
    {"f64", "double"},
    /* PyTorch, its examples and trainers */
    {"learning-rate", "lr"},
    {"per-device-train-batch-size", "batch-per-device"},
    {"num-train-epochs", "epochs"},
    {"num-epochs", "epochs"},
    {"max-steps", "steps"},
    {"warmup-steps", "warmup"},
    {"num-workers", "workers"},
    {"dataloader-num-workers", "workers"},
    {"prefetch-factor", "prefetch"},
    {"arch", "model"},
    {"output-dir", "out"},
    {"log-dir", "out"},
    {"backend", "comm"},
    {"dist-backend", "comm"},
    {"precision", "dtype"},
    {"bucket-cap-mb", "bucket-mb"},
    {"gradient-as-bucket-view", "bucket-view"},
    {"find-unused-parameters", "find-unused"},
    {"n-microbatches", "micro"},
    {"chunks", "micro"},
    {"dataparallel", "dp"},
    {"distributeddataparallel", "ddp"},
    {"gpu", "cuda"},
    {"float32", "f32"},
    {"fp32", "f32"},
    {"float", "f32"},
    {"float64", "f64"},
    {"fp64", "f64"},
    {"double", "f64"},
    {"gloo", "tcp"},
    {NULL, NULL},
};

const struct el_foreign_name *el_foreign_names(void)
{
    return foreign_names;
}

#define DEVICES  "write --devices cuda:N for N GPUs, or --devices N for N CPU devices"
#define TORCHRUN "it is the launcher's: torchrun --nnodes N ... --no_python evenload run ..."
#define MPIRUN   "it is the launcher's: mpirun -np N evenload run ..., or --devices N for ranks of this host"
#define PLACE                                                                                                          \
    "leave it out: a rank takes its place from the variables of mpirun or torchrun ('evenload help environment')"

/* What launchers, nccl-tests and training scripts take and we do not, and what to do. */
static const struct el_foreign_name foreign_options[] = {
    {"batch-size", "--batch is of all devices together, --batch-per-device of each"},
    {"nproc-per-node", DEVICES},
    {"num-processes", DEVICES},
    {"world-size", DEVICES},
    {"num-gpus", DEVICES},
    {"ngpus", DEVICES},
    {"gpus", DEVICES},
    {"gpu", DEVICES},
    {"gpu-ids", DEVICES},
    {"g", DEVICES},
    {"nnodes", TORCHRUN},
    {"num-nodes", TORCHRUN},
    {"num-machines", TORCHRUN},
    {"node-rank", TORCHRUN},
    {"machine-rank", TORCHRUN},
    {"standalone", TORCHRUN},
    {"rdzv-backend", TORCHRUN},
    {"rdzv-endpoint", TORCHRUN},
    {"rdzv-id", TORCHRUN},
    {"np", MPIRUN},
    {"hostfile", MPIRUN},
    {"local-rank", PLACE},
    {"rank", PLACE},
    {"master-addr", PLACE},
    {"master-port", PLACE},
    {NULL, NULL},
};

const struct el_foreign_name *el_foreign_options(void)
{
    return foreign_options;
}

static int fold(char c)
{
    return c == '_' ? '-' : tolower((unsigned char)c);
}

static bool alike(const char *a, const char *b)
{
    while (*a && fold(*a) == fold(*b)) a++, b++;
    return !*a && !*b;
}

static const char *translate(const char *word, const char *const *names)
{
    for (const struct el_foreign_name *row = foreign_names; row->theirs; row++)
        for (const char *const *name = names; *name && alike(word, row->theirs); name++)
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

const char *el_suggest_instead(const char *option)
{
    const struct el_foreign_name *row = foreign_options;
    while (row->theirs && !alike(option, row->theirs)) row++;
    return row->ours;
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
