/* The communicators between ranks as users start them: this program starts itself, under mpirun and by our own
 * launcher, with up to 4 ranks, and lets every rank check its bootstrap and each communicator. Prints lines of the Test
 * Anything Protocol; exit status 1 on a failure. What needs MPI is skipped where there is none. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/job/worker.h"
#include "runtime/comm/clock_relation.h"
#include "runtime/launch/mpirun.h"
#include "tests/conformance/bootstrap_checks.h"
#include "tests/conformance/comm_mail.h"
#include "tests/conformance/comm_scenes.h"
#include "tests/conformance/comm_sequences.h"
#include "tests/conformance/comm_splits.h"

enum { RANKS_MAX = 4, TAIL_BYTES = 4096 };

/* ---- in a rank ---- */

/* On one host the truth is known: the offset is 0, so an exchange must find it within its own bound; and a drift of the
 * offset is followed in between. */
static enum el_status check_clocks(struct el_bootstrap *bootstrap)
{
    struct el_clock_anchor shared, found;
    EL_TRY(el_clock_relate(bootstrap, &shared));
    EL_TRY(el_clock_exchange(bootstrap, &found));
    if (!shared.shared || shared.offset_ns != 0 || shared.error_ns < 1 || shared.error_ns > 1000000)
        return el_fail(EL_ERR_INTERNAL, "clocks: one host must be known to have one clock");
    bool first = el_bootstrap_rank(bootstrap) == 0, alone = el_bootstrap_size(bootstrap) == 1;
    if (found.worst_ns < found.error_ns || (first && !alone && found.worst_ns == 0) || shared.worst_ns < 1)
        return el_fail(EL_ERR_INTERNAL, "clocks: the largest error of all ranks is not known");
    if (llabs(found.offset_ns) > found.error_ns || found.error_ns > 100000000)
        return el_fail(EL_ERR_INTERNAL, "clocks: offset %lld, error %lld", (long long)found.offset_ns,
                       (long long)found.error_ns);
    struct el_clock_anchor begin = {.at_ns = 1000, .offset_ns = 100}, end = {.at_ns = 2000, .offset_ns = 300};
    if (el_clock_common(&begin, &end, 1500) != 1300 || el_clock_common(&begin, &begin, 1500) != 1400)
        return el_fail(EL_ERR_INTERNAL, "clocks: a drift is not followed");
    return EL_OK;
}

/* 7 to the 8th is a whole number of 24 bits: exact in f32. */
enum { BOTH = 2, TURNS = 8, BOTH_COUNT = 100000 };

/* Ones, all-reduced TURNS times by each of two communicators; every other rank issues the second one's first. */
static enum el_status sum_by_both(struct el_comm *const *comms, struct el_program *program)
{
    int rank = el_comm_rank(comms[0]), size = el_comm_size(comms[0]);
    float host[BOTH_COUNT], expected = 1;
    struct el_buffer *buffers[BOTH];
    for (int i = 0; i < BOTH_COUNT; i++) host[i] = 1;
    for (int b = 0; b < BOTH; b++) {
        EL_TRY(el_device_alloc(el_comm_device(comms[b]), EL_TAG_GRAD, sizeof host, "data", &buffers[b]));
        EL_TRY(el_device_write(el_view_of(buffers[b], 0), host, sizeof host));
    }
    for (int i = 0; i < TURNS; i++) {
        expected *= (float)size;
        for (int k = 0; k < BOTH; k++) {
            int b = (k + rank) % BOTH;
            struct el_comm_op op = {
                .verb = EL_COMM_ALL_REDUCE, .dtype = EL_F32, .count = BOTH_COUNT, .data = el_view_of(buffers[b], 0)};
            EL_TRY(el_comm_issue(comms[b], program, &op, NULL));
        }
    }
    EL_TRY(el_program_end(program));
    EL_TRY(el_program_run(program, 0, NULL));
    for (int b = 0; b < BOTH; b++) {
        EL_TRY(el_device_read(el_view_of(buffers[b], 0), host, sizeof host));
        for (int i = 0; i < BOTH_COUNT; i++)
            if (host[i] != expected) return el_fail(EL_ERR_INTERNAL, "two at once: %g, not %g", host[i], expected);
        el_device_free(buffers[b]);
    }
    return EL_OK;
}

/* Two communicators at once do not wait for each other, in whatever order the ranks come to their operations. */
static enum el_status check_two(struct el_bootstrap *bootstrap, struct el_device *device, const char *kind)
{
    struct el_comm *comms[BOTH];
    struct el_program *program;
    for (int b = 0; b < BOTH; b++) EL_TRY(el_comm_open_ranks(kind, bootstrap, device, &comms[b]));
    EL_TRY(el_program_create(&program));
    enum el_status status = sum_by_both(comms, program);
    el_program_destroy(program);
    for (int b = 0; b < BOTH; b++) el_comm_close(comms[b]);
    return status;
}

enum { LETTERS = 3, LETTER_COUNT = 300000 };

static int32_t letter[LETTER_COUNT];

static void write_letter(int rank, int tag)
{
    for (int i = 0; i < LETTER_COUNT; i++) letter[i] = rank * 1000000 + tag * 100000 + i % 1000;
}

/* All send before any receives, and take what came by tag, last sent first. */
static enum el_status pass_letters(struct el_comm *comm)
{
    int rank = el_comm_rank(comm), size = el_comm_size(comm), before = (rank + size - 1) % size;
    struct el_comm_op op = {.verb = EL_COMM_SEND,
                            .dtype = EL_I32,
                            .count = LETTER_COUNT,
                            .root = (rank + 1) % size,
                            .data = el_view_host(letter)};
    for (op.tag = 0; op.tag < LETTERS; op.tag++) {
        write_letter(rank, op.tag);
        EL_TRY(el_comm_exchange(comm, &op));
    }
    memset(letter, 0, sizeof letter); /* what was sent has been put away */
    struct el_comm_op take = {
        .verb = EL_COMM_RECV, .dtype = EL_I32, .count = LETTER_COUNT, .root = before, .result = el_view_host(letter)};
    for (take.tag = LETTERS - 1; take.tag >= 0; take.tag--) {
        EL_TRY(el_comm_exchange(comm, &take));
        for (int i = 0; i < LETTER_COUNT; i++)
            if (letter[i] != before * 1000000 + take.tag * 100000 + i % 1000)
                return el_fail(EL_ERR_INTERNAL, "letter %d of rank %d: [%d] is %d", take.tag, before, i, letter[i]);
    }
    return EL_OK;
}

/* In a group of its own, whose mailboxes hold all letters: where they do not, ranks that all send first wait for each
 * other. */
static enum el_status check_letters(struct el_bootstrap *bootstrap, struct el_device *device, const char *kind)
{
    struct el_comm *comm;
    EL_TRY(el_comm_open_ranks(kind, bootstrap, device, &comm));
    enum el_status status = el_comm_open_mailboxes(comm, NULL, LETTERS * sizeof letter);
    if (status == EL_OK) status = pass_letters(comm);
    if (status == EL_OK) status = check_partners(comm);
    if (status != EL_OK) el_comm_abort(comm); /* the others would wait for this one */
    el_comm_close(comm);
    return status;
}

/* Tags, rounds through a box, what is refused. */
static enum el_status check_mpi_mail(struct el_bootstrap *bootstrap, struct el_device *device)
{
    struct el_comm *comm;
    if (el_bootstrap_size(bootstrap) < 2) return EL_OK;
    EL_TRY(el_comm_open_ranks("mpi", bootstrap, device, &comm));
    enum el_status status = check_mail(comm);
    if (status != EL_OK) el_comm_abort(comm); /* the others would wait for this one */
    el_comm_close(comm);
    return status;
}

/* In the checking mode all are told who does what, by name and number; a group that is at one goes on. */
static enum el_status check_told(struct el_bootstrap *bootstrap, struct el_device *device, const char *kind)
{
    struct el_comm *comm;
    EL_TRY(el_comm_open_ranks(kind, bootstrap, device, &comm));
    enum el_status status = el_comm_set_checking(comm, true);
    if (status == EL_OK) status = check_operations(comm, 1000, EL_F32, 0);
    float host[16] = {0};
    struct el_comm_op op = {.verb = el_comm_rank(comm) == 0 ? EL_COMM_BROADCAST : EL_COMM_ALL_REDUCE,
                            .dtype = EL_F32,
                            .count = 16,
                            .data = el_view_host(host)};
    if (status == EL_OK && el_comm_exchange(comm, &op) != EL_ERR_INTERNAL)
        status = el_fail(EL_ERR_INTERNAL, "nobody noticed");
    if (status == EL_OK && (!strstr(el_error_message(), "the broadcast number 4 (16 f32") ||
                            !strstr(el_error_message(), "the all_reduce number 4 (16 f32")))
        status = el_fail(EL_ERR_INTERNAL, "it was not told by name: %.300s", el_error_message());
    el_comm_close(comm);
    return el_bootstrap_agree(bootstrap, status);
}

/* The whole product of shm and tcp is their own tests'. */
static enum el_status product_of(const char *kind, struct el_comm *comm)
{
    return strcmp(kind, "mpi") == 0 ? check_product(comm) : check_product_of(comm, false);
}

static enum el_status check_kind(struct el_bootstrap *bootstrap, struct el_device *device, const char *kind)
{
    struct el_comm *comm = NULL;
    EL_TRY(el_comm_open_ranks(kind, bootstrap, device, &comm));
    enum el_status status = strcmp(el_comm_backend(comm), kind) == 0 ? product_of(kind, comm) : EL_ERR_INTERNAL;
    if (status == EL_OK) status = check_two(bootstrap, device, kind);
    if (status == EL_OK && el_comm_has_verb(comm, EL_COMM_SEND)) status = check_letters(bootstrap, device, kind);
    if (status == EL_OK && strcmp(kind, "mpi") == 0) status = check_mpi_mail(bootstrap, device);
    if (status == EL_OK && strcmp(kind, "mpi") == 0) status = check_splits(comm);
    if (status == EL_OK && strcmp(kind, "mpi") == 0) status = check_sequences(comm, 20);
    status = el_bootstrap_agree(bootstrap, status);
    if (status == EL_OK && el_comm_size(comm) > 1) status = scene_last_rank_aborts(bootstrap, comm);
    if (status == EL_OK && el_comm_size(comm) > 1 && el_comm_has_verb(comm, EL_COMM_ALL_GATHER))
        status = check_told(bootstrap, device, kind);
    el_comm_close(comm);
    if (status == EL_OK) printf("ok %s\n", kind);
    return status;
}

/* The last rank is killed while the others are in an all-reduce: they are to end, whatever they wait for. */
static enum el_status die_in_the_middle(struct el_bootstrap *bootstrap, struct el_device *device, const char *kind)
{
    struct el_comm *comm = NULL;
    EL_TRY(el_comm_open_ranks(kind, bootstrap, device, &comm));
    enum el_status status = EL_OK;
    for (int i = 0; status == EL_OK; i++) {
        if (i == 3 && el_comm_rank(comm) == el_comm_size(comm) - 1) raise(SIGKILL);
        status = check_operations(comm, 1000000, EL_F32, 0);
    }
    el_comm_close(comm);
    return status;
}

static enum el_status act(struct el_bootstrap *bootstrap, struct el_device *device, char **argv)
{
    if (el_bootstrap_size(bootstrap) != atoi(argv[3]))
        return el_fail(EL_ERR_INTERNAL, "%d ranks, not %s", el_bootstrap_size(bootstrap), argv[3]);
    EL_TRY(el_bootstrap_agree(bootstrap, check_bootstrap(bootstrap)));
    EL_TRY(el_bootstrap_agree(bootstrap, check_clocks(bootstrap)));
    printf("ok bootstrap %s\n", el_bootstrap_library(bootstrap));
    if (strcmp(argv[2], "die") == 0) return die_in_the_middle(bootstrap, device, argv[4]);
    if (strcmp(el_comm_choose(bootstrap, NULL), "shm") != 0) return el_fail(EL_ERR_INTERNAL, "not shm on one host");
    bool mpi = strcmp(el_bootstrap_kind(bootstrap), "mpi") == 0;
    if (!mpi || !is_sanitized()) { /* how ranks met changes nothing in these */
        EL_TRY(check_kind(bootstrap, device, "shm"));
        EL_TRY(check_kind(bootstrap, device, "tcp"));
    }
    return mpi ? check_kind(bootstrap, device, "mpi") : EL_OK;
}

static int be_rank(char **argv)
{
    struct el_bootstrap *bootstrap = NULL;
    struct el_device *device = NULL;
    el_launch_rank_init();
    enum el_status status = el_join_environment(&bootstrap);
    if (status == EL_ERR_ABSENT) {
        printf("absent: %s\n", el_error_message());
        return 77;
    }
    if (status == EL_OK) {
        int rank = el_bootstrap_rank(bootstrap), cores = (int)sysconf(_SC_NPROCESSORS_ONLN);
        struct el_device_spec spec = {
            .backend = "cpu", .index = rank, .position = rank, .n_cores = 1, .cores = {rank % cores}};
        status = el_device_open(&spec, &device);
    }
    if (status == EL_OK) status = act(bootstrap, device, argv);
    if (status != EL_OK) printf("not ok: %s: %s\n", el_status_text(status), el_error_message());
    fflush(stdout);
    el_device_close(device);
    if (status != EL_OK) el_bootstrap_abort(bootstrap, 1);
    el_bootstrap_close(bootstrap);
    return status == EL_OK ? 0 : 1;
}

/* ---- in the program that starts them ---- */

static enum el_status start(enum el_launch_by by, int ranks, const char *folder, char *const *arguments,
                            struct el_launch_result *result)
{
    char self[4096], *argv[8] = {self, "rank"};
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length < 0) return el_fail_errno("/proc/self/exe");
    self[length] = 0;
    for (int i = 0; arguments[i] && i < 5; i++) argv[2 + i] = arguments[i];
    struct el_launch_spec spec = {
        .argv = argv, .procs = ranks, .by = by, .log_dir = folder, .timeout_s = getenv("EVENLOAD_LONG") ? 900 : 120};
    return el_launch_run(&spec, result);
}

static const char *name_of(enum el_launch_by by)
{
    return by == EL_LAUNCH_BY_OWN ? "own" : "mpirun";
}

static void show_logs(const char *folder, int ranks)
{
    char text[TAIL_BYTES];
    for (int rank = -1; rank < ranks; rank++) {
        el_launch_log_tail(folder, rank, 8, text, sizeof text);
        if (text[0]) printf("# log of rank %d:\n%s", rank, text);
    }
}

/* One process is started without any launcher: MPI takes it for a world of its own. */
static int test_size(int number, enum el_launch_by by, int ranks, const char *folder)
{
    char text[TAIL_BYTES], size[16];
    struct el_launch_result result;
    snprintf(size, sizeof size, "%d", ranks);
    if (start(by, ranks, folder, (char *[]){"check", size, NULL}, &result) != EL_OK) {
        printf("not ok %d - %s, %d ranks: %s\n", number, name_of(by), ranks, el_error_message());
        return 1;
    }
    if (result.exit_status == 77) {
        el_launch_log_tail(folder, 0, 1, text, sizeof text);
        printf("ok %d - %s, %d ranks # SKIP %s", number, name_of(by), ranks, text);
        return 0;
    }
    printf("%s %d - %s, %d ranks: bootstrap and communicators (%.1f s)\n", result.ok ? "ok" : "not ok", number,
           name_of(by), ranks, result.wall_s);
    if (result.ok) return 0;
    printf("# %s\n", result.reason);
    show_logs(folder, ranks);
    return 1;
}

static int test_death(int number, const char *kind, const char *folder)
{
    struct el_launch_result result = {.wall_s = 0};
    enum el_status status = start(EL_LAUNCH_BY_OWN, 4, folder, (char *[]){"die", "4", (char *)kind, NULL}, &result);
    bool well =
        status == EL_OK && strcmp(result.reason, "rank 3 was killed by signal 9 (Killed)") == 0 && result.wall_s < 30;
    printf("%s %d - a rank killed in an all-reduce of %s ends the job\n", well ? "ok" : "not ok", number, kind);
    if (well) return 0;
    printf("# after %.1f s: %s\n", result.wall_s, status == EL_OK ? result.reason : el_error_message());
    show_logs(folder, 4);
    return 1;
}

static int test_all(const char *folder)
{
    char *mpirun = NULL;
    bool with_mpirun = el_mpirun_find(&mpirun) == EL_OK;
    int n_failed = 0, number = 0;
    free(mpirun);
    bool is_long = getenv("EVENLOAD_LONG");
    int most = is_sanitized() && !is_long ? RANKS_MAX - 1 : RANKS_MAX;
    product_announce();
    printf("1..%d\n", 2 * most + 1 + is_long);
    for (int ranks = 2; ranks <= most; ranks++) n_failed += test_size(++number, EL_LAUNCH_BY_OWN, ranks, folder);
    n_failed += test_death(++number, "shm", folder);
    n_failed += test_death(++number, "tcp", folder);
    for (int ranks = 1; ranks <= most + is_long; ranks++) {
        if (with_mpirun && ranks > RANKS_MAX)
            n_failed += test_size(++number, EL_LAUNCH_BY_MPIRUN, PRODUCT_SIZE_MAX, folder);
        else if (with_mpirun)
            n_failed += test_size(++number, EL_LAUNCH_BY_MPIRUN, ranks, folder);
        else
            printf("ok %d - mpirun, %d ranks # SKIP mpirun is not installed\n", ++number, ranks);
    }
    return n_failed;
}

int main(int argc, char **argv)
{
    char folder[] = "/tmp/el-test-comm-XXXXXX", command[64];
    if (argc > 2 && strcmp(argv[1], "rank") == 0) return be_rank(argv);
    if (!mkdtemp(folder)) return 1;
    int n_failed = test_all(folder);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    if (system(command) != 0) n_failed++;
    return n_failed ? 1 : 0;
}
