/* The local communicator when a member fails: nobody waits for one that gave up, is late or does something else, and
 * the operation is named. Each member issues and runs its own program in a thread of its own. Also meant for
 * ThreadSanitizer. */
#include "tests/test.h"

#include <pthread.h>
#include <unistd.h>

#include "tests/conformance/comm_checks.h"
#include "tests/conformance/comm_mail.h"
#include "tests/sanitized.h"
#include "tests/unit/local_group.h"

static enum el_status large(struct el_comm *comm)
{
    return check_operations(comm, is_sanitized() ? 100000 : 1000000, EL_F32, 0);
}

static enum el_status last_aborts(struct el_comm *comm)
{
    if (el_comm_rank(comm) == el_comm_size(comm) - 1) {
        usleep(20000);
        el_comm_abort(comm);
    }
    return large(comm);
}

static enum el_status last_never_comes(struct el_comm *comm)
{
    if (el_comm_rank(comm) != el_comm_size(comm) - 1) return large(comm);
    usleep(20000);
    el_comm_abort(comm);
    return el_fail(EL_ERR_PEER, "gave up");
}

static void test_abort_frees_the_waiting(void **state)
{
    struct group group;
    for (int n = 2; n <= MEMBERS_MAX; n++) {
        open_group(&group, n, "cpu");
        all_do(&group, last_never_comes, EL_ERR_PEER);
        all_do(&group, large, EL_ERR_PEER); /* and for good */
        close_group(&group);
        group_does(n, last_aborts, EL_ERR_PEER);
    }
}

/* Each check has three operations, the first of them an all-reduce. */
static void test_a_failure_names_its_operation(void **state)
{
    struct group group;
    open_group(&group, 2, "cpu");
    all_do(&group, large, EL_OK);
    el_comm_abort(group.comms[0]);
    struct member member = {.comm = group.comms[1], .act = large};
    be_member(&member);
    assert_int_equal(member.outcome.status, EL_ERR_PEER);
    if (!strstr(member.outcome.text, "the all_reduce number 4 of rank 1: ")) fail_msg("%s", member.outcome.text);
    close_group(&group);
}

static void *abort_soon(void *context)
{
    usleep(3000);
    el_comm_abort(context);
    return NULL;
}

/* Nothing but all-reduces, on memory that goes as soon as the program has failed. */
static enum el_status abort_under_way(struct el_comm *comm)
{
    enum { COUNT = 1 << 20, OPERATIONS = 20 };
    struct el_buffer *buffer;
    struct el_program *program;
    EL_TRY(el_device_alloc(el_comm_device(comm), EL_TAG_GRAD, COUNT * sizeof(float), "g", &buffer));
    EL_TRY(el_program_create(&program));
    for (int i = 0; i < OPERATIONS; i++) EL_TRY(all_reduce(comm, program, buffer, COUNT));
    EL_TRY(el_program_end(program));
    enum el_status status = el_program_run(program, 0, NULL);
    el_program_destroy(program);
    el_device_free(buffer);
    return status;
}

static enum el_status until_failure(struct el_comm *comm)
{
    enum el_status status = EL_OK;
    for (int i = 0; i < 100000 && status == EL_OK; i++) status = abort_under_way(comm);
    return status;
}

/* An abort at any moment: each member may free its memory as soon as its operation has failed (it does). */
static void test_abort_amid_operations(void **state)
{
    for (int i = 0; i < 20; i++) {
        struct group group;
        pthread_t thread;
        open_group(&group, 3, "cpu");
        assert_int_equal(pthread_create(&thread, NULL, abort_soon, group.comms[i % 3]), 0);
        all_do(&group, until_failure, EL_ERR_PEER);
        pthread_join(thread, NULL);
        close_group(&group);
    }
}

static enum el_status issue_different(struct el_comm *comm)
{
    return check_operations(comm, 1000 + (size_t)el_comm_rank(comm), EL_F32, 0);
}

static void test_different_operations_are_noticed(void **state)
{
    struct group group;
    struct member members[2];
    open_group(&group, 2, "cpu");
    for (int i = 0; i < 2; i++) {
        members[i] = (struct member){.comm = group.comms[i], .act = issue_different};
        assert_int_equal(pthread_create(&members[i].thread, NULL, be_member, &members[i]), 0);
    }
    for (int i = 0; i < 2; i++) pthread_join(members[i].thread, NULL);
    for (int i = 0; i < 2; i++) assert_int_not_equal(members[i].outcome.status, EL_OK);
    close_group(&group);
}

static enum el_status open_small_mailboxes(struct el_comm *comm)
{
    return el_comm_open_mailboxes(comm, NULL, 100);
}

static enum el_status receive_from_first(struct el_comm *comm)
{
    if (el_comm_rank(comm) > 0) return mail_take(comm, 0, 0, 0, 10);
    usleep(20000);
    el_comm_abort(comm);
    return el_fail(EL_ERR_PEER, "gave up");
}

static void test_abort_frees_who_receives(void **state)
{
    struct group group;
    open_group(&group, 3, "cpu");
    all_do(&group, open_small_mailboxes, EL_OK);
    all_do(&group, receive_from_first, EL_ERR_PEER);
    close_group(&group);
}

static enum el_status last_is_late(struct el_comm *comm)
{
    EL_TRY(el_comm_set_timeout(comm, 0.02));
    if (el_comm_rank(comm) == el_comm_size(comm) - 1) usleep(200000);
    return large(comm);
}

static void test_a_late_member_fails_all(void **state)
{
    group_does(3, last_is_late, EL_ERR_PEER);
}

RUN_TESTS(NULL, NULL, test_abort_frees_the_waiting, test_abort_amid_operations, test_a_failure_names_its_operation,
          test_different_operations_are_noticed, test_abort_frees_who_receives, test_a_late_member_fails_all)
