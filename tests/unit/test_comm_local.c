/* The communicators within a process, self and local: exact sums on every member, messages, groups that split, and
 * memory that is counted. Each member issues and runs its own program in a thread of its own. Also meant for
 * ThreadSanitizer. */
#include "tests/test.h"

#include <stdbool.h>
#include <stdlib.h>

#include "runtime/comm/comm_ops.h"
#include "tests/conformance/comm_mail.h"
#include "tests/conformance/comm_sequences.h"
#include "tests/conformance/comm_splits.h"
#include "tests/unit/local_group.h"

static void test_operations(void **state)
{
    for (int i = 0; i < count_product_sizes(); i++) group_does(product_sizes[i], check_product, EL_OK);
}

static void test_self(void **state)
{
    struct el_device_spec spec = {.backend = "cpu"};
    struct el_device *device;
    struct el_comm *comm;
    assert_int_equal(el_device_open(&spec, &device), EL_OK);
    assert_int_equal(el_comm_open_self(device, &comm), EL_OK);
    assert_int_equal(el_comm_size(comm), 1);
    assert_int_equal(check_product(comm), EL_OK);
    el_comm_close(comm);
    el_device_close(device);
}

/* Numbers whose sum depends on the order: every member must get the bits of ((a+b)+c)+d. */
static enum el_status check_order(struct el_comm *comm)
{
    static const float parts[] = {1e8f, 1.25f, -1e8f, 0.3f};
    enum { COUNT = 10000 };
    float host[COUNT], expected = parts[0];
    for (int i = 0; i < COUNT; i++) host[i] = parts[el_comm_rank(comm)];
    for (int r = 1; r < el_comm_size(comm); r++) {
        volatile float sum = expected + parts[r];
        expected = sum;
    }
    EL_TRY(bits_all_reduce(comm, EL_COMM_SUM, EL_F32, host, COUNT));
    for (int i = 0; i < COUNT; i++)
        if (memcmp(&host[i], &expected, sizeof expected) != 0)
            return el_fail(EL_ERR_INTERNAL, "not summed in rank order");
    return EL_OK;
}

static void test_sums_in_rank_order(void **state)
{
    for (int n = 2; n <= MEMBERS_MAX; n++) group_does(n, check_order, EL_OK);
}

/* Muted, the same program leaves each member's numbers alone; unmuted it sums them. */
static enum el_status check_muted(struct el_comm *comm)
{
    enum { COUNT = 1000 };
    struct el_buffer *buffer;
    struct el_program *program;
    float mine = (float)(el_comm_rank(comm) + 1), sum = 0, host[COUNT];
    bool good = true;
    for (int r = 1; r <= el_comm_size(comm); r++) sum += (float)r;
    EL_TRY(el_device_alloc(el_comm_device(comm), EL_TAG_GRAD, sizeof host, "g", &buffer));
    EL_TRY(el_program_create(&program));
    EL_TRY(all_reduce(comm, program, buffer, COUNT));
    EL_TRY(el_program_end(program));
    for (int muted = 1; muted >= 0; muted--) {
        for (int i = 0; i < COUNT; i++) host[i] = mine;
        EL_TRY(el_device_write(el_view_of(buffer, 0), host, sizeof host));
        el_comm_mute(comm, muted);
        EL_TRY(el_program_run(program, 0, NULL));
        EL_TRY(el_device_read(el_view_of(buffer, 0), host, sizeof host));
        for (int i = 0; i < COUNT; i++) good = good && host[i] == (muted ? mine : sum);
    }
    el_program_destroy(program);
    el_device_free(buffer);
    return good ? EL_OK : el_fail(EL_ERR_INTERNAL, "muted it summed, or unmuted it did not");
}

static void test_muted(void **state)
{
    group_does(3, check_muted, EL_OK);
}

/* Memory from a communicator, in place and out of it, counted as any. */
static enum el_status check_registered(struct el_comm *comm)
{
    struct el_buffer *buffer;
    EL_TRY(el_comm_alloc(comm, EL_TAG_BUCKET, 4000, "bucket", &buffer));
    bool counted = el_device_ledger(el_comm_device(comm))->live_by_tag[EL_TAG_BUCKET] == 4000;
    el_device_free(buffer);
    bool freed = el_device_ledger(el_comm_device(comm))->live_bytes == 0;
    return counted && freed ? EL_OK : el_fail(EL_ERR_INTERNAL, "the ledger does not count it");
}

static void test_registered_memory_is_counted(void **state)
{
    static const char *const backends[] = {"cpu", "null", "sim"};
    for (int b = 0; b < 3; b++)
        for (int n = 1; n <= 2; n++) group_of_does(backends[b], n, check_registered, EL_OK);
}

static void test_send_and_receive(void **state)
{
    struct group group;
    for (int n = 2; n <= MEMBERS_MAX; n++) {
        open_group(&group, n, "cpu");
        all_do(&group, check_mail, EL_OK);
        all_do(&group, check_partners, EL_OK);
        close_group(&group);
        group_does(n, check_full_mailbox, EL_OK);
    }
}

/* Their mailboxes stand in the ledger, and nobody is waited for. */
static void test_simulated_devices_have_links(void **state)
{
    struct group group;
    open_group(&group, 3, "sim");
    assert_false(el_comm_has_verb(group.comms[0], EL_COMM_SEND));
    assert_int_equal(el_comm_open_mailboxes(group.comms[0], NULL, 100), EL_OK);
    assert_true(el_comm_has_verb(group.comms[0], EL_COMM_SEND));
    assert_int_equal(el_device_ledger(el_comm_device(group.comms[0]))->live_by_tag[EL_TAG_MAILBOX], 200);
    close_group(&group);
}

static void test_groups_split(void **state)
{
    for (int n = 1; n <= MEMBERS_MAX; n++) group_does(n, check_splits, EL_OK);
}

static enum el_status sequences(struct el_comm *comm)
{
    return check_sequences(comm, 140);
}

static void test_random_sequences_over_random_groups(void **state)
{
    group_does(MEMBERS_MAX, sequences, EL_OK);
}

/* One thread for several members would wait for itself. */
static void test_members_of_one_thread_do_not_split(void **state)
{
    struct group group;
    struct el_comm *part, *together[2];
    open_group(&group, 2, "null");
    assert_int_equal(el_comm_open_together(group.devices, 2, together), EL_OK);
    assert_int_equal(el_comm_split(together[0], 0, 0, &part), EL_ERR_INVALID);
    for (int i = 0; i < 2; i++) el_comm_close(together[i]);
    close_group(&group);
}

static void test_what_cannot_be_opened(void **state)
{
    struct el_bootstrap *bootstrap;
    struct el_comm *comm;
    struct el_device *device;
    assert_int_equal(el_device_open(&(struct el_device_spec){.backend = "null"}, &device), EL_OK);
    assert_int_equal(el_bootstrap_open("none", &bootstrap), EL_ERR_ABSENT);
    assert_int_equal(el_bootstrap_open("self", &bootstrap), EL_OK);
    assert_int_equal(el_comm_open_ranks("local", bootstrap, device, &comm), EL_ERR_ABSENT);
    assert_int_equal(el_comm_open_ranks("shm", bootstrap, device, &comm), EL_OK);
    assert_string_equal(el_comm_backend(comm), "shm");
    el_comm_close(comm);
    assert_int_equal(el_bootstrap_agree(bootstrap, EL_OK), EL_OK);
    assert_int_equal(el_bootstrap_agree(bootstrap, EL_ERR_OOM), EL_ERR_OOM);
    el_bootstrap_close(bootstrap);
    el_device_close(device);
}

int main(void)
{
    product_announce();
    return RUN(NULL, NULL, test_operations, test_self, test_sums_in_rank_order, test_muted,
               test_registered_memory_is_counted, test_send_and_receive, test_simulated_devices_have_links,
               test_groups_split, test_random_sequences_over_random_groups, test_members_of_one_thread_do_not_split,
               test_what_cannot_be_opened);
}
