/* Communicators on GPUs: NCCL with one rank and with two ranks that share the first card (each with an NCCL_HOSTID of
 * its own), several members for one thread, and ranks staged through shared memory. One card is enough; where there are
 * more, members have cards of their own.
 *
 * Ranks are forked before anything here opens CUDA, which does not survive a fork: so this process itself never does.
 */
#include "tests/test.h"

#include "runtime/comm/nccl/comm_nccl.h"
#include "tests/conformance/comm_checks.h"
#include "tests/conformance/comm_product.h"
#include "tests/conformance/comm_splits.h"
#include "tests/unit/star_bootstrap.h"

enum { MEMBERS = 2, NO_GPU = 77 };

/* How many cards there are; in a process of its own. */
static int count_cards(void)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        struct el_backend_info infos[16];
        int cards = 0;
        for (int i = el_device_backends(infos, 16) - 1; i >= 0; i--)
            if (strcmp(infos[i].name, "cuda") == 0 && infos[i].usable) cards = infos[i].n_devices;
        _exit(cards < NO_GPU ? cards : NO_GPU);
    }
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 0;
}

static void need_gpu(int *cards_p)
{
    *cards_p = count_cards();
    if (*cards_p > 0) return;
    print_message("# skip: no GPU can be used here\n");
    skip();
}

static enum el_status open_device(int position, int cards, struct el_device **device_p)
{
    struct el_device_spec spec = {.backend = "cuda", .index = cards > 0 ? position % cards : 0, .position = position};
    return el_device_open(&spec, device_p);
}

static int done(int rank, enum el_status status)
{
    if (status != EL_OK) fprintf(stderr, "rank %d: %s\n", rank, el_error_message());
    return status == EL_OK ? 0 : 1;
}

struct part {
    int cards;
    const char *kind;
    bool host_ids; /* each rank is on a host of its own, NCCL is told */
    enum el_status expected;
};

static enum el_status join(struct star *star, const struct part *part, struct el_device *device)
{
    struct el_comm *comm = NULL;
    EL_TRY(el_comm_open_ranks(part->kind, &star->base, device, &comm));
    enum el_status status = check_product(comm);
    if (status == EL_OK) status = check_splits(comm);
    if (status == EL_OK) status = el_bootstrap_barrier(&star->base);
    el_comm_close(comm);
    return status;
}

static int be_rank(struct star *star, void *context)
{
    const struct part *part = context;
    struct el_device *device = NULL;
    char id[32];
    snprintf(id, sizeof id, "evenload-%d", star->base.rank);
    if (part->host_ids) setenv("NCCL_HOSTID", id, 1);
    enum el_status status = open_device(star->base.rank, part->cards, &device);
    if (status == EL_OK) status = join(star, part, device);
    el_device_close(device);
    if (part->expected != EL_OK) return status == part->expected ? 0 : 1;
    return done(star->base.rank, status);
}

static void two_ranks_by_nccl(void **state)
{
    struct part part = {.kind = "nccl", .host_ids = true};
    need_gpu(&part.cards);
    assert_int_equal(star_ranks(MEMBERS, be_rank, &part), 0);
}

static void two_ranks_on_one_card_without_host_ids(void **state)
{
    struct part part = {.kind = "nccl", .expected = EL_ERR_INVALID};
    need_gpu(&part.cards);
    part.cards = 1;
    assert_int_equal(star_ranks(MEMBERS, be_rank, &part), 0);
}

static void two_ranks_staged_through_shm(void **state)
{
    struct part part = {.kind = "shm"};
    need_gpu(&part.cards);
    assert_int_equal(star_ranks(MEMBERS, be_rank, &part), 0);
}

/* NCCL with one member, which comm.c never asks for: the sum of one is what it was. */
static enum el_status sum_alone(struct el_device *device)
{
    enum { COUNT = 100000 };
    const struct el_nccl_api *api;
    struct el_buffer *buffer;
    float *host = calloc(COUNT, sizeof *host);
    void *member, *stream;
    const struct el_comm_place place = {.device = device};
    for (int i = 0; i < COUNT; i++) host[i] = (float)i;
    EL_TRY(el_nccl_api_open(&api));
    EL_TRY(el_device_alloc(device, EL_TAG_GRAD, COUNT * sizeof *host, "x", &buffer));
    EL_TRY(el_device_write(el_view_of(buffer, 0), host, COUNT * sizeof *host));
    EL_TRY(el_nccl_open_members(api, &place, 1, &member));
    EL_TRY(el_device_native_stream(device, EL_STREAM_COMM, &stream));
    struct el_comm_part part = {.state = member,
                                .task = {.verb = EL_COMM_ALL_REDUCE,
                                         .dtype = EL_F32,
                                         .count = COUNT,
                                         .data = (void *)buffer->address,
                                         .result = (void *)buffer->address,
                                         .stream = stream}};
    EL_TRY(el_nccl_ops.enqueue(&part, 1));
    EL_TRY(el_nccl_ops.poll(member));
    EL_TRY(el_device_stream_synchronize(device, EL_STREAM_COMM));
    EL_TRY(el_device_read(el_view_of(buffer, 0), host, COUNT * sizeof *host));
    el_nccl_ops.close(member);
    int wrong = 0;
    for (int i = 0; i < COUNT; i++) wrong += host[i] != (float)i;
    free(host);
    el_device_free(buffer);
    return wrong ? el_fail(EL_ERR_INTERNAL, "%d elements are wrong", wrong) : EL_OK;
}

static int be_alone(struct star *star, void *context)
{
    struct el_device *device = NULL;
    enum el_status status = open_device(0, ((struct part *)context)->cards, &device);
    if (status == EL_OK) status = sum_alone(device);
    el_device_close(device);
    return done(star->base.rank, status);
}

static void one_rank_by_nccl(void **state)
{
    struct part part = {.kind = "nccl"};
    need_gpu(&part.cards);
    assert_int_equal(star_ranks(1, be_alone, &part), 0);
}

/* As dp does: one program, with a reduce or a broadcast of all members. `peer` where they share a card, else NCCL. */
static enum el_status play_together(const struct part *part)
{
    static const enum el_comm_verb verbs[] = {EL_COMM_REDUCE, EL_COMM_BROADCAST};
    struct el_device *devices[MEMBERS];
    struct el_comm *comms[MEMBERS];
    enum el_status status = EL_OK;
    for (int m = 0; m < MEMBERS; m++) EL_TRY(open_device(m, part->cards, &devices[m]));
    EL_TRY(el_comm_open_together(devices, MEMBERS, comms));
    if (strcmp(el_comm_backend(comms[0]), part->kind) != 0)
        return el_fail(EL_ERR_INTERNAL, "members of one thread: %s", el_comm_backend(comms[0]));
    for (int i = 0; i < 4 && status == EL_OK; i++) {
        struct case_play plays[MEMBERS];
        for (int m = 0; m < MEMBERS; m++)
            plays[m] = (struct case_play){
                .c = {.verb = verbs[i / 2], .dtype = EL_F32, .count = 1100000, .in_place = i % 2}, .comm = comms[m]};
        status = case_check_all(plays, MEMBERS);
    }
    for (int m = 0; m < MEMBERS; m++) el_comm_close(comms[m]);
    for (int m = 0; m < MEMBERS; m++) el_device_close(devices[m]);
    return status;
}

static int issue_for_all(struct star *star, void *context)
{
    return done(star->base.rank, play_together(context));
}

static void one_thread_for_members_on_one_card(void **state)
{
    struct part part = {.kind = "peer"};
    need_gpu(&part.cards);
    part.cards = 1;
    assert_int_equal(star_ranks(1, issue_for_all, &part), 0);
}

static void one_thread_for_members_on_their_cards(void **state)
{
    struct part part = {.kind = "nccl"};
    need_gpu(&part.cards);
    if (part.cards < MEMBERS) {
        print_message("# skip: one GPU: NCCL between cards of one process was not looked at\n");
        skip();
    }
    assert_int_equal(star_ranks(1, issue_for_all, &part), 0);
}

RUN_TESTS(NULL, NULL, one_rank_by_nccl, two_ranks_by_nccl, two_ranks_on_one_card_without_host_ids,
          two_ranks_staged_through_shm, one_thread_for_members_on_one_card, one_thread_for_members_on_their_cards)
