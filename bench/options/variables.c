/* The environment variables that the program reads, as rows: 'evenload help environment', the man page and
 * docs/install.md have them from here. Those that it gives its own processes (EL_...) are nobody's to set. */
#include "bench/options/options.h"

static const struct el_variable_row rows[] = {
    {"RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT",
     "all four, as torchrun sets them: this process is a rank; rank 0 listens at MASTER_ADDR:MASTER_PORT"},
    {"LOCAL_RANK, LOCAL_WORLD_SIZE", "the rank's place among the ranks of its host, which chooses its device; their "
                                     "number"},
    {"TORCHELASTIC_RUN_ID, TORCHELASTIC_USE_AGENT_STORE",
     "torchrun's name of the job; True: its agent listens at MASTER_PORT, and rank 0 takes a port above it"},
    {"OMPI_COMM_WORLD_*, PMIX_*, PMI_*, MPI_LOCALRANKID, MPI_LOCALNRANKS",
     "what mpirun and srun tell a rank of MPI: its rank, its local rank, the number of ranks. SLURM_PROCID alone makes "
     "no rank"},
    {"OMPI_MCA_*, PRTE_MCA_*, PMIX_MCA_*", "settings of mpirun; where evenload starts it, they override its own"},
    {"EVENLOAD_SECRET", "a word that all ranks of a job know; rank 0 turns away processes without it. evenload makes "
                        "one for ranks that it "
                        "starts"},
    {"CUDA_VISIBLE_DEVICES", "chooses and orders the GPUs, as for every CUDA program; its first entry is cuda:0"},
    {"CUDA_MODULE_LOADING",
     "when CUDA loads the code of kernels; unset: EAGER where one process has threads for several GPUs"},
    {"CUDA_LAUNCH_BLOCKING", "other than 0: several GPUs in one process are refused, as their collectives would hang"},
    {"NCCL_*", "settings of NCCL; the record has those that are set. NCCL_COMM_BLOCKING is always set to 1"},
    {"NCCL_HOSTID", "what NCCL takes for the host: ranks that share a GPU need different ones"},
    {"NVTX_INJECTION64_PATH", "set by Nsight Systems: the phases of steps are marked for it by NVTX"},
    {"PATH", "where mpirun, gnuplot and gzip are looked for"},
    {"NO_COLOR, TERM", "no colours where NO_COLOR is set, or TERM is dumb or not set"},
    {"GITHUB_STEP_SUMMARY", "a file that --markdown appends to instead of writing it anew"},
    {.name = NULL},
};

const struct el_variable_row *el_variable_rows(void)
{
    return rows;
}
