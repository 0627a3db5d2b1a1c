/* Members of one process, for the tests of its communicators: a group of them, and what all of them do at the same
 * time, each in a thread of its own. */
#pragma once

#include <pthread.h>

#include "runtime/comm/comm.h"
#include "tests/conformance/comm_product.h"

enum { MEMBERS_MAX = 4 };

struct group {
    int n;
    struct el_device *devices[PRODUCT_SIZE_MAX];
    struct el_comm *comms[PRODUCT_SIZE_MAX];
};

static inline void open_group(struct group *group, int n, const char *backend)
{
    group->n = n;
    for (int i = 0; i < n; i++) {
        struct el_device_spec spec = {.backend = backend, .index = i, .position = i};
        assert_int_equal(el_device_open(&spec, &group->devices[i]), EL_OK);
    }
    assert_int_equal(el_comm_open_local(group->devices, n, group->comms), EL_OK);
}

static inline void close_group(struct group *group)
{
    for (int i = 0; i < group->n; i++) el_comm_close(group->comms[i]);
    for (int i = 0; i < group->n; i++) el_device_close(group->devices[i]);
}

struct member {
    pthread_t thread;
    struct el_comm *comm;
    enum el_status (*act)(struct el_comm *comm);
    struct el_error outcome;
};

static inline void *be_member(void *context)
{
    struct member *member = context;
    el_error_take(member->act(member->comm), &member->outcome);
    return NULL;
}

/* Every member does `act` at the same time; each must end with `expected`. */
static inline void all_do(struct group *group, enum el_status (*act)(struct el_comm *comm), enum el_status expected)
{
    struct member members[PRODUCT_SIZE_MAX];
    for (int i = 0; i < group->n; i++) {
        members[i] = (struct member){.comm = group->comms[i], .act = act};
        assert_int_equal(pthread_create(&members[i].thread, NULL, be_member, &members[i]), 0);
    }
    for (int i = 0; i < group->n; i++) pthread_join(members[i].thread, NULL);
    for (int i = 0; i < group->n; i++) {
        if (members[i].outcome.status != expected) print_error("member %d: %s\n", i, members[i].outcome.text);
        assert_int_equal(members[i].outcome.status, expected);
    }
}

/* In a group of its own, of the backend's devices. */
static inline void group_of_does(const char *backend, int n, enum el_status (*act)(struct el_comm *comm),
                                 enum el_status expected)
{
    struct group group;
    open_group(&group, n, backend);
    all_do(&group, act, expected);
    close_group(&group);
}

static inline void group_does(int n, enum el_status (*act)(struct el_comm *comm), enum el_status expected)
{
    group_of_does("cpu", n, act, expected);
}

static inline enum el_status all_reduce(struct el_comm *comm, struct el_program *program, struct el_buffer *buffer,
                                        size_t count)
{
    struct el_comm_op op = {.verb = EL_COMM_ALL_REDUCE,
                            .dtype = EL_F32,
                            .count = count,
                            .data = el_view_of(buffer, 0),
                            .phase = EL_PHASE_COMM};
    return el_comm_issue(comm, program, &op, NULL);
}
