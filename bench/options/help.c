/* --help, from the rows: usage, options, examples. It knows no option; the environment variables are rows here. */
#include <string.h>

#include "bench/base/text.h"
#include "bench/options/options.h"

enum { COLUMN = 27 };

/* "  left      words", wrapped; what is longer than the column has a line of its own. */
static void print_item(FILE *file, const char *left, const char *words)
{
    char first[128], rest[COLUMN + 1];
    bool fits = strlen(left) <= COLUMN - 2;
    snprintf(rest, sizeof rest, "%*s", COLUMN, "");
    snprintf(first, sizeof first, "  %-*s", COLUMN - 2, left);
    if (!fits) fprintf(file, "%s\n", first);
    el_text_wrap(words, fits ? first : rest, rest, file);
}

static void print_row(FILE *file, const struct el_option_row *row, unsigned command)
{
    const char *initial = el_option_initial(row, command);
    char left[64], right[512], letter[8] = "", keys[48] = "=";
    if (row->letter) snprintf(letter, sizeof letter, "-%c, ", row->letter);
    snprintf(left, sizeof left, "%s--%s %s", letter, row->name, row->argument ? row->argument : "");
    if (el_option_is_within(row, command)) {
        el_option_keys(row, keys, sizeof keys);
        snprintf(left, sizeof left, "  %s", keys);
    }
    /* A word by itself, on or not there, has no values to choose. */
    const bool word = !strchr(keys, '=') && row->choices && strchr(row->choices, '|') == strrchr(row->choices, '|');
    const bool noted = !word && (row->choices || *initial);
    snprintf(right, sizeof right, "%s%s%s%s%s%s%s", row->help, noted ? " (" : "",
             noted && row->choices ? row->choices : "", noted && row->choices && *initial ? "; " : "",
             noted && *initial ? "default: " : "", noted ? initial : "", noted ? ")" : "");
    print_item(file, left, right);
}

/* Modes and models: each with what it is, or their names alone. */
static void print_names(FILE *file, unsigned command, bool all)
{
    char modes[256] = "", models[512] = "";
    if (all && (command & EL_CMD_OF_MODES)) fprintf(file, "\nModes\n");
    for (const struct el_mode_info *mode = el_mode_list(); mode->name && (command & EL_CMD_OF_MODES); mode++) {
        if (all) print_item(file, mode->name, mode->summary);
        el_text_append(modes, sizeof modes, "%s%s", *modes ? ", " : "", mode->name);
    }
    fprintf(file, all ? "\nModels\n" : "\n");
    for (const struct el_model_info *model = el_model_list(); model->name; model++) {
        if (all) print_item(file, model->name, model->summary);
        el_text_append(models, sizeof models, "%s%s", *models ? ", " : "", model->name);
    }
    if (all) return;
    if (*modes) el_text_wrap(modes, "Modes: ", "       ", file);
    el_text_wrap(models, "Models: ", "        ", file);
}

/* Every row of the command under its group's heading, or the common ones. */
static void print_rows(FILE *file, unsigned command, bool all)
{
    const char *group = "";
    if (!all) fprintf(file, "\nCommon options\n");
    for (const struct el_option_row *row = el_option_rows(); row->name; row++) {
        if (!(row->commands & command) || !(all || row->common)) continue;
        if (el_option_is_within(row, command)) continue; /* below the outer option */
        if (all && strcmp(group, row->group)) fprintf(file, "\n%s\n", row->group);
        group = row->group;
        print_row(file, row, command);
        for (const struct el_option_row *inner = el_option_rows(); inner->name && all; inner++) {
            const struct el_option_within *within = el_option_within(inner->name);
            if ((inner->commands & command) && within && !strcmp(within->in, row->name))
                print_row(file, inner, command);
        }
    }
}

void el_options_help(FILE *file, const struct el_command_row *row, bool all)
{
    enum { FEW = 12 }; /* so many need no choice among them */
    const unsigned command = row->bit;
    const char *name = el_command_name(command);
    int n = 0;
    for (const struct el_option_row *option = el_option_rows(); option->name; option++)
        n += (option->commands & command) && !el_option_is_within(option, command);
    fprintf(file, "usage: evenload %s %s\n\n", name, row->usage);
    el_text_wrap(row->summary, "", "", file);
    print_rows(file, command, all || n <= FEW);
    if (command & EL_CMD_OF_TRIALS) print_names(file, command, all);
    fprintf(file, "\nExamples\n%s", row->examples);
    if (!all && n > FEW) fprintf(file, "\nAll %d options: evenload %s --help all\n", n, name);
}

/* ---- the environment variables that the program reads: the man page and docs/install.md have them from here too.
 * Those that it gives its own processes (EL_...) are nobody's to set ---- */

/* Names by comma, where * is any ending, and what they do. */
static const struct variable {
    const char *name, *help;
} variables[] = {
    {"RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT",
     "all four, as torchrun sets them: this process is a rank; rank 0 listens at MASTER_ADDR:MASTER_PORT"},
    {"LOCAL_RANK, LOCAL_WORLD_SIZE",
     "the rank's place among the ranks of its host, which chooses its device; their number"},
    {"TORCHELASTIC_RUN_ID, TORCHELASTIC_USE_AGENT_STORE",
     "torchrun's name of the job; True: its agent listens at MASTER_PORT, and rank 0 takes a port above it"},
    {"OMPI_COMM_WORLD_*, PMIX_*, PMI_*, MPI_LOCALRANKID, MPI_LOCALNRANKS",
     "what mpirun and srun tell a rank of MPI: its rank, its local rank, the number of ranks"},
    {"SLURM_JOB_ID, SLURM_STEP_*, SLURM_PROCID, SLURM_LOCALID",
     "a task of srun, of several, without MPI: this process is a rank, and rank 0 listens at the step's first node; "
     "which of the hosts of watch --hosts N this is, where nothing else tells"},
    {"SLURMD_NODENAME, SLURM_TOPOLOGY_ADDR", "fleet: this host's name, and the switch above it"},
    {"EVENLOAD_RSH", "fleet: the program that starts a command on a host of --hosts (ssh), called with both"},
    {"OMPI_MCA_*, PRTE_MCA_*, PMIX_MCA_*", "settings of mpirun; where evenload starts it, they override its own"},
    {"EVENLOAD_SECRET", "a word that all ranks of a job know; rank 0 turns away processes without it. evenload makes "
                        "one for ranks that it starts"},
    {"CUDA_VISIBLE_DEVICES", "chooses and orders the GPUs, as for every CUDA program; its first entry is cuda:0"},
    {"CUDA_MODULE_LOADING", "when CUDA loads the code of kernels; unset: EAGER where one process has threads for "
                            "several GPUs, and where ranks send messages (mp, pipeline)"},
    {"CUDA_DEVICE_MAX_CONNECTIONS", "hardware queues of a GPU, which its streams share; unset: 32 where ranks send "
                                    "messages; with fewer these are refused"},
    {"CUDA_LAUNCH_BLOCKING",
     "other than 0: several GPUs in one process, and messages between ranks, are refused, as they would hang"},
    {"NVIDIA_TF32_OVERRIDE", "0: NVIDIA's libraries compute nothing in TF32, whatever --precision tf32 says"},
    {"NCCL_*", "settings of NCCL; the record has those that are set. NCCL_COMM_BLOCKING is always set to 1, and "
               "NCCL_LAUNCH_ORDER_IMPLICIT to 1 where ranks have collectives alone and it is not set"},
    {"EVENLOAD_NCCL_DIR", "where evenload's NCCL profiler writes, in any program (docs/comm.md); else evenload-nccl"},
    {"NCCL_HOSTID", "what NCCL takes for the host: ranks that share a GPU need different ones (--comm nccl sets them)"},
    {"NCCL_MULTI_RANK_GPU_ENABLE", "1: NCCL from 2.30 on takes ranks that share a GPU without them"},
    {"LD_LIBRARY_PATH", "where libraries are looked for first, those of CUDA, NCCL and MPI too"},
    {"VIRTUAL_ENV, CONDA_PREFIX, HOME",
     "Python environments, where pip's nvidia packages and conda's libraries are looked for last"},
    {"NVTX_INJECTION64_PATH", "set by Nsight Systems: the phases of steps are marked for it by NVTX"},
    {"PATH", "where mpirun, gnuplot and gzip are looked for, and the Python environment where VIRTUAL_ENV names none"},
    {"PYTHONPATH", "watch puts the folder of its hook before it, for the command that it watches (--no-hook: not)"},
    {"TORCH_FR_BUFFER_SIZE",
     "calls that PyTorch's flight recorder keeps; where it is unset, a watched command has 4000"},
    {"NO_COLOR, TERM", "no colours where NO_COLOR is set, or TERM is dumb or not set"},
    {"GITHUB_STEP_SUMMARY", "a file that --markdown appends to instead of writing it anew"},
    {"GITHUB_SHA, CI_COMMIT_*", "the commit that a stored session is of, where its folder is in no git repository"},
    {"TMPDIR", "where fleet keeps a phase's results for a moment; else /tmp"},
    {.name = NULL},
};

void el_variables_help(FILE *file)
{
    fprintf(file, "Environment variables\n\n");
    for (const struct variable *row = variables; row->name; row++) print_item(file, row->name, row->help);
}
