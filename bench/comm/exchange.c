/* `comm sendrecv --show-steps`: the exchange that tutorials begin with, carried out: rank 0 adds 1 to a number and
 * sends it, rank 1 adds 1 and sends it back. Two members of this process; what is printed is what they received. */
#include <pthread.h>

#include "bench/comm/wire.h"

enum { MAILBOX_BYTES = 4096 };

struct side {
    struct el_comm *comm;
    struct el_device *device;
    int32_t number, received;
    struct el_error error;
};

static enum el_status move(struct side *side, enum el_comm_verb verb, int32_t *number)
{
    const bool sends = verb == EL_COMM_SEND;
    const struct el_comm_op op = {.verb = verb,
                                  .dtype = EL_I32,
                                  .count = 1,
                                  .root = 1 - el_comm_rank(side->comm),
                                  .data = el_view_host(sends ? number : NULL),
                                  .result = el_view_host(sends ? NULL : number)};
    return el_comm_exchange(side->comm, &op);
}

static void *run_side(void *argument)
{
    struct side *side = argument;
    bool first = el_comm_rank(side->comm) == 0;
    enum el_status status = el_comm_open_mailboxes(side->comm, NULL, MAILBOX_BYTES);
    if (status == EL_OK && !first) status = move(side, EL_COMM_RECV, &side->received);
    side->number = side->received + 1;
    if (status == EL_OK) status = move(side, EL_COMM_SEND, &side->number);
    if (status == EL_OK && first) status = move(side, EL_COMM_RECV, &side->received);
    if (status != EL_OK) el_comm_abort(side->comm);
    el_error_take(status, &side->error);
    return NULL;
}

static enum el_status run_both(struct side sides[2])
{
    struct el_device *devices[2] = {sides[0].device, sides[1].device};
    struct el_comm *comms[2];
    pthread_t other;
    EL_TRY(el_comm_open_local(devices, 2, comms));
    for (int i = 0; i < 2; i++) sides[i].comm = comms[i];
    enum el_status status = EL_OK;
    if (pthread_create(&other, NULL, run_side, &sides[1]) != 0) {
        status = el_fail(EL_ERR_HOST_MEMORY, "no thread for rank 1");
    } else {
        run_side(&sides[0]);
        pthread_join(other, NULL);
    }
    for (int i = 0; i < 2; i++) el_comm_close(comms[i]);
    for (int i = 0; i < 2 && status == EL_OK; i++)
        if (sides[i].error.status != EL_OK) status = el_error_give(&sides[i].error);
    return status;
}

enum el_status el_wire_show_exchange(FILE *out)
{
    struct side sides[2] = {{.comm = NULL}, {.comm = NULL}};
    enum el_status status = EL_OK;
    for (int i = 0; i < 2 && status == EL_OK; i++) {
        const struct el_device_spec spec = {.backend = "null", .index = i, .position = i};
        status = el_device_open(&spec, &sides[i].device);
    }
    if (status == EL_OK) status = run_both(sides);
    for (int i = 0; i < 2; i++) el_device_close(sides[i].device);
    if (status != EL_OK) return status;
    fprintf(out,
            "sendrecv: two ranks exchange a number that is 0 at first\n"
            "  step 1: rank 0 adds 1 and sends %d to rank 1\n  step 2: rank 1 has received %d\n"
            "  step 3: rank 1 adds 1 and sends %d back\n  step 4: rank 0 has received %d\n",
            sides[0].number, sides[1].received, sides[1].number, sides[0].received);
    return EL_OK;
}
