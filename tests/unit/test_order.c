/* The order in which one thread issues a program to streams that work by themselves: groups stand together, nothing
 * comes before what it waits for, and what needs no change keeps the order in which it was issued. */
#include "tests/test.h"

#include <stdlib.h>

#include "runtime/device/internal.h"
#include "tests/unit/sim_steps.h"

enum { PLACES = 4096 };

struct step {
    struct el_device *devices[MEMBERS];
    struct el_program *program;
    int order[PLACES], place[PLACES];
};

static int add(struct step *step, int device, int stream, uint64_t group, int wait)
{
    int id;
    struct el_call_op op = {.head.phase = EL_PHASE_COMM, .op_class = EL_CLASS_COMM, .run = never};
    if (group) op.group = (struct el_call_group){.of = step, .number = group};
    assert_int_equal(el_program_wait(step->program, step->devices[device], stream, wait), EL_OK);
    assert_int_equal(el_program_call(step->program, step->devices[device], stream, &op, &id), EL_OK);
    return id;
}

/* Orders, and looks whether every op is there once and behind what it depends on. */
static void order(struct step *step)
{
    int n = el_program_op_count(step->program);
    assert_true(n <= PLACES);
    assert_int_equal(el_program_order(step->program, step->order), EL_OK);
    for (int id = 0; id < n; id++) step->place[id] = -1;
    for (int i = 0; i < n; i++) {
        assert_int_equal(step->place[step->order[i]], -1);
        step->place[step->order[i]] = i;
    }
    for (int id = 0; id < n; id++) {
        const struct el_task *task = &step->program->tasks[id];
        for (int w = 0; w < task->n_waits; w++)
            assert_true(step->place[step->program->waits[task->first_wait + w]] < step->place[id]);
        for (int other = 0; other < id; other++)
            if (step->program->tasks[other].queue == task->queue) assert_true(step->place[other] < step->place[id]);
    }
}

static void test_as_issued(void **state)
{
    struct step step;
    step.program = begin_program(step.devices, MEMBERS, NULL);
    int a = add(&step, 0, 0, 0, -1), b = add(&step, 1, 0, 0, a);
    add(&step, 0, 1, 0, b);
    add(&step, 0, 0, 0, -1);
    order(&step);
    for (int i = 0; i < 4; i++) assert_int_equal(step.order[i], i);
    end_program(step.program, step.devices, MEMBERS);
}

/* As dp issues: each member flattens, reduces on its communication stream, and lets its compute stream wait. */
static void test_groups_stand_together(void **state)
{
    struct step step;
    step.program = begin_program(step.devices, MEMBERS, NULL);
    int calls[4][MEMBERS];
    for (int chunk = 0; chunk < 4; chunk++) {
        for (int m = 0; m < MEMBERS; m++) {
            int flat = add(&step, m, EL_STREAM_COMPUTE, 0, -1);
            calls[chunk][m] = add(&step, m, EL_STREAM_COMM, 100 + (uint64_t)chunk, flat);
            add(&step, m, EL_STREAM_COMPUTE, 0, calls[chunk][m]);
        }
    }
    order(&step);
    for (int chunk = 0; chunk < 4; chunk++)
        for (int m = 1; m < MEMBERS; m++)
            assert_int_equal(step.place[calls[chunk][m]], step.place[calls[chunk][0]] + m);
    /* Chunk 0's sums go back before chunk 1 is reduced: what was held is older. */
    assert_true(step.place[calls[0][0]] + 1 < step.place[calls[1][0]]);
    end_program(step.program, step.devices, MEMBERS);
}

/* Two collectives that members issued in different orders can never meet. */
static void test_crossed_groups(void **state)
{
    struct step step;
    step.program = begin_program(step.devices, MEMBERS, NULL);
    add(&step, 0, EL_STREAM_COMM, 7, -1);
    add(&step, 0, EL_STREAM_COMM, 8, -1);
    add(&step, 1, EL_STREAM_COMM, 8, -1);
    add(&step, 1, EL_STREAM_COMM, 7, -1);
    assert_int_equal(el_program_order(step.program, step.order), EL_ERR_INTERNAL);
    end_program(step.program, step.devices, MEMBERS);
}

static int draw(uint32_t *seed, int below)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (int)((*seed >> 8) % (uint32_t)below);
}

/* Many programs at random: groups of all members between plain ops and waits. */
static void test_random(void **state)
{
    int n_ordered = 0;
    uint32_t seed = 1;
    for (int round = 0; round < 50; round++) {
        struct step step;
        step.program = begin_program(step.devices, MEMBERS, NULL);
        int calls[16][MEMBERS];
        for (int g = 0; g < 16; g++) {
            for (int m = 0; m < MEMBERS; m++) {
                for (int k = draw(&seed, 4); k > 0; k--) {
                    int last = el_program_op_count(step.program);
                    add(&step, draw(&seed, MEMBERS), draw(&seed, 2) ? EL_STREAM_COMPUTE : 2, 0,
                        last ? draw(&seed, last) : -1);
                }
                calls[g][m] = add(&step, m, EL_STREAM_COMM, 50 + (uint64_t)g,
                                  el_program_last(step.program, step.devices[m], EL_STREAM_COMPUTE));
            }
        }
        /* A plain op between two calls of a group may wait for the first and be waited for by the second. */
        if (el_program_order(step.program, step.order) == EL_OK) {
            order(&step);
            n_ordered++;
            for (int g = 0; g < 16; g++)
                for (int m = 1; m < MEMBERS; m++)
                    assert_int_equal(step.place[calls[g][m]], step.place[calls[g][0]] + m);
        }
        end_program(step.program, step.devices, MEMBERS);
    }
    assert_true(n_ordered > 0);
}

RUN_TESTS(NULL, NULL, test_as_issued, test_groups_stand_together, test_crossed_groups, test_random)
