/* Large mailboxes, senders that leave, time-outs and what failures are called in the communicator `tcp`, between
 * processes made by fork. */
#include "tests/test.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/comm/tcp/comm_tcp.h"
#include "tests/unit/tcp_processes.h"

enum { MIB = 1 << 20, TAGS = 4, BOX_BYTES = 16 * MIB };

/* A rank's part. */
typedef enum el_status (*act)(struct el_bootstrap *bootstrap, struct el_tcp_group *group);

static int play(const struct el_rendezvous *place, const void *context)
{
    const act *act_p = context;
    struct el_bootstrap *bootstrap = NULL;
    void *group = NULL;
    enum el_status status = el_bootstrap_open_tcp(place, &bootstrap);
    if (status == EL_OK) status = el_comm_tcp_backend.open_ranks(bootstrap, &group);
    bool partners[TCP_PROCESSES_MAX];
    char *boxes = calloc(TCP_PROCESSES_MAX, BOX_BYTES);
    for (int r = 0; r < place->size; r++) partners[r] = r != place->rank;
    if (status == EL_OK) status = el_tcp_open_mailboxes(group, EL_OK, partners, boxes, BOX_BYTES);
    if (status == EL_OK) status = (*act_p)(bootstrap, group);
    if (status != EL_OK) fprintf(stderr, "rank %d: %s\n", place->rank, el_error_message());
    el_comm_tcp_backend.ops->close(group);
    free(boxes);
    el_bootstrap_close(bootstrap);
    return status == EL_OK ? 0 : 1;
}

static void run_ranks(const char *what, int size, act act_of_all)
{
    int wait_statuses[TCP_PROCESSES_MAX];
    tcp_processes(size, play, &act_of_all, wait_statuses);
    for (int rank = 0; rank < size; rank++)
        if (wait_statuses[rank] != 0)
            fail_msg("%s: rank %d of %d ended with %d", what, rank, size, wait_statuses[rank]);
}

static enum el_status run(struct el_tcp_group *group, enum el_comm_verb verb, int root, int tag, void *bytes,
                          size_t count)
{
    static uint64_t number;
    struct el_comm_task task = {.verb = verb,
                                .dtype = EL_U8,
                                .algorithm = EL_COMM_DIRECT,
                                .root = root,
                                .tag = tag,
                                .number = ++number,
                                .count = count,
                                .data = bytes,
                                .result = bytes};
    return el_tcp_run(group, &task);
}

/* The operation failed, and says so in these words. */
static enum el_status expect(enum el_status status, const char *words)
{
    if (status == EL_OK) return el_fail(EL_ERR_INTERNAL, "it did not fail: '%s'", words);
    if (strstr(el_error_message(), words)) return EL_OK;
    struct el_error error;
    el_error_take(status, &error);
    return el_fail(EL_ERR_INTERNAL, "'%s' is not in '%s'", words, error.text);
}

/* ---- mail ---- */

/* Returns when the other end of `socket` has been closed; with no events: and has refused what was written to it. */
static enum el_status wait_for_end(int socket, short events)
{
    struct pollfd polls = {.fd = socket, .events = events};
    int ready;
    do ready = poll(&polls, 1, 20000);
    while (ready < 0 && errno == EINTR);
    return ready == 1 ? EL_OK : el_fail(EL_ERR_INTERNAL, "the sender did not end");
}

/* Rank 0 sends and ends; rank 1 takes all but the first message when nobody hears of it any more: what it writes to
 * that connection is refused, and what it writes after that fails. */
static enum el_status sender_ends(struct el_bootstrap *bootstrap, struct el_tcp_group *group)
{
    (void)bootstrap;
    unsigned char byte;
    for (int tag = 0; tag < TAGS; tag++) {
        byte = group->rank == 0 ? (unsigned char)(tag + 1) : 0;
        EL_TRY(run(group, group->rank == 0 ? EL_COMM_SEND : EL_COMM_RECV, 1 - group->rank, tag, &byte, 1));
        if (byte != tag + 1) return el_fail(EL_ERR_INTERNAL, "tag %d: got %d", tag, byte);
        int socket = group->rank == 1 ? atomic_load(&group->peers[0].from[EL_TCP_LANE_MAIL]) : -1;
        if (socket >= 0 && tag == 0) EL_TRY(wait_for_end(socket, POLLRDHUP));
        if (socket >= 0 && tag == 1) EL_TRY(wait_for_end(socket, 0)); /* POLLERR or POLLHUP */
    }
    return EL_OK;
}

/* Rank 0 leaves: what it sent is taken, what it never sent fails, by its name and without a time-out. */
static enum el_status never_sent(struct el_bootstrap *bootstrap, struct el_tcp_group *group)
{
    (void)bootstrap;
    unsigned char byte = 7;
    if (group->rank == 0) return run(group, EL_COMM_SEND, 1, 3, &byte, 1);
    byte = 0;
    EL_TRY(run(group, EL_COMM_RECV, 0, 3, &byte, 1));
    if (byte != 7) return el_fail(EL_ERR_INTERNAL, "got %d", byte);
    return expect(run(group, EL_COMM_RECV, 0, 4, &byte, 1), "rank 0 (host ");
}

static enum el_status sent_nothing(struct el_bootstrap *bootstrap, struct el_tcp_group *group)
{
    (void)bootstrap;
    unsigned char byte = 0;
    return group->rank == 0 ? EL_OK : expect(run(group, EL_COMM_RECV, 0, 0, &byte, 1), "rank 0 (host ");
}

/* Each sends to all others before it receives anything: much more than sockets hold. */
static enum el_status all_send_first(struct el_bootstrap *bootstrap, struct el_tcp_group *group)
{
    (void)bootstrap;
    size_t bytes = 6 * MIB;
    unsigned char *data = malloc(bytes);
    enum el_status status = data ? EL_OK : el_fail_errno("test");
    for (int to = 0; to < group->size && status == EL_OK; to++) {
        if (to == group->rank) continue;
        memset(data, 16 * group->rank + to, bytes);
        status = run(group, EL_COMM_SEND, to, 0, data, bytes);
    }
    for (int from = 0; from < group->size && status == EL_OK; from++) {
        if (from == group->rank) continue;
        status = run(group, EL_COMM_RECV, from, 0, data, bytes);
        for (size_t i = 0; i < bytes && status == EL_OK; i++)
            if (data[i] != 16 * from + group->rank)
                status = el_fail(EL_ERR_INTERNAL, "from %d: [%zu] is %d", from, i, data[i]);
    }
    free(data);
    return status;
}

static enum el_status nobody_takes_it(struct el_bootstrap *bootstrap, struct el_tcp_group *group)
{
    unsigned char *data = calloc(1, 9 * MIB);
    enum el_status status = data ? EL_OK : el_fail_errno("test");
    if (status == EL_OK && group->rank == 0) {
        status = run(group, EL_COMM_SEND, 1, 0, data, 9 * MIB);
        el_comm_tcp_backend.ops->set_timeout(group, 200000000); /* the first one takes what it takes on a busy host */
        if (status == EL_OK)
            status = expect(run(group, EL_COMM_SEND, 1, 0, data, 9 * MIB), "rank 0 waited 0.2 s for rank 1 (host ");
    }
    free(data);
    return el_bootstrap_agree(bootstrap, status);
}

static enum el_status other_size(struct el_bootstrap *bootstrap, struct el_tcp_group *group)
{
    unsigned char data[8] = {0};
    enum el_status status = EL_OK;
    if (group->rank == 0) status = run(group, EL_COMM_SEND, 1, 5, data, 4);
    if (group->rank == 1) status = expect(run(group, EL_COMM_RECV, 0, 5, data, 8), "came a message of 4 bytes");
    return el_bootstrap_agree(bootstrap, status);
}

/* ---- what failures say ---- */

/* Rank 2 stays away. Of the others one runs out of time first, and all know why. */
static enum el_status one_is_late(struct el_bootstrap *bootstrap, struct el_tcp_group *group)
{
    float data[100] = {0};
    enum el_status status = EL_OK;
    el_comm_tcp_backend.ops->set_timeout(group, 200000000);
    if (group->rank != 2)
        status = expect(run(group, EL_COMM_ALL_REDUCE, 0, 0, data, sizeof data), "waited 0.2 s for rank ");
    return el_bootstrap_agree(bootstrap, status);
}

static enum el_status they_differ(struct el_bootstrap *bootstrap, struct el_tcp_group *group)
{
    float data[100] = {0};
    enum el_status status = run(group, EL_COMM_ALL_REDUCE, 0, 0, data, 64);
    if (status == EL_OK)
        status = run(group, group->rank == 0 ? EL_COMM_ALL_REDUCE : EL_COMM_ALL_GATHER, 0, 0, data, 64);
    if (status != EL_OK) status = expect(status, "all_gather number 2");
    if (status == EL_OK) status = expect(EL_ERR_PEER, "all_reduce number 2");
    return el_bootstrap_agree(bootstrap, status);
}

static void test_messages_and_failures(void **state)
{
    static const struct {
        const char *what;
        int size;
        act act_of_all;
    } rows[] = {
        {"a sender may end before all is taken", 2, sender_ends},
        {"no message is waited for of one that left", 2, never_sent},
        {"no message is waited for of one that sent nothing", 2, sent_nothing},
        {"no order of sends dead-locks", 3, all_send_first},
        {"a full mailbox ends with the time", 2, nobody_takes_it},
        {"a message of another size is refused", 2, other_size},
        {"a late rank is waited for so long", 3, one_is_late},
        {"different operations are named on both", 2, they_differ},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) run_ranks(rows[i].what, rows[i].size, rows[i].act_of_all);
}

/* One that computes for longer than a silent host is waited for, while much is on its way to it. */
static enum el_status computes_for_long(struct el_bootstrap *bootstrap, struct el_tcp_group *group)
{
    enum { LONGER_S = 16 };
    unsigned char *data = calloc(1, 64 * MIB);
    enum el_status status = data ? EL_OK : el_fail_errno("test");
    if (group->rank == 1) sleep(LONGER_S);
    if (status == EL_OK) status = run(group, EL_COMM_BROADCAST, 0, 0, data, 64 * MIB);
    free(data);
    return el_bootstrap_agree(bootstrap, status);
}

static void test_a_slow_rank_is_not_gone(void **state)
{
    if (!getenv("EVENLOAD_LONG")) {
        print_message("# long: a rank that computes for 16 s\n");
        skip();
    }
    run_ranks("a slow rank is not gone", 2, computes_for_long);
}

RUN_TESTS(NULL, NULL, test_messages_and_failures, test_a_slow_rank_is_not_gone)
