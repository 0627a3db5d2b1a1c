/* Folders of checkpoints from others: links, pipes and what has only the name of a checkpoint. */
#include "tests/test.h"

#include <sys/stat.h>
#include <unistd.h>

#include "bench/trial/events.h"
#include "runtime/base/status.h"
#include "runtime/state/checkpoint.h"
#include "tests/unit/own_folder.h"

static char path[EL_PATH_BYTES];

/* folder/NAME */
static const char *in(const char *name)
{
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void put(const char *name)
{
    FILE *file = fopen(in(name), "w");
    assert_true(file && fclose(file) == 0);
}

static bool is_there(const char *name)
{
    struct stat info;
    return lstat(in(name), &info) == 0;
}

static void what_links_lead_to_stays(void **state)
{
    static const char *const links[] = {"ck/step-5.part", "ck/step-6", "ck/step-7"};
    assert_true(mkdir(in("precious"), 0777) == 0 && mkdir(in("ck"), 0777) == 0 && mkdir(in("ck/step-8"), 0777) == 0);
    put("precious/thesis.txt"), put("precious/index.json"), put("precious/rank-0.safetensors");
    put("ck/step-8/thesis.txt"), put("ck/step-8/index.json"), put("ck/step-8/rank-0.safetensors.tmp.0123456789abcdef");
    for (int i = 0; i < 3; i++) assert_int_equal(symlink("../precious", in(links[i])), 0);
    char ck[EL_PATH_BYTES];
    snprintf(ck, sizeof ck, "%s", in("ck"));
    el_checkpoint_remove_parts(ck);
    el_checkpoint_tidy(ck, 8, 0);
    for (int i = 0; i < 3; i++) assert_false(is_there(links[i]));
    assert_true(is_there("precious/thesis.txt") && is_there("precious/index.json"));
    assert_true(is_there("precious/rank-0.safetensors") && is_there("ck/step-8/thesis.txt"));
    assert_false(is_there("ck/step-8/index.json") || is_there("ck/step-8/rank-0.safetensors.tmp.0123456789abcdef"));
}

static void only_a_folder_with_an_index_is_one(void **state)
{
    static const char *const others[] = {"step-9999", "step-040", "step-30x", "step-20.part", "step--1"};
    for (int i = 0; i < 5; i++) assert_int_equal(mkdir(in(others[i]), 0777), 0);
    put("step-040/index.json"), put("step-30x/index.json"), put("step-20.part/index.json"), put("step-50");
    assert_int_equal(el_checkpoint_last(folder), -1);
    assert_int_equal(mkdir(in("step-10"), 0777), 0);
    put("step-10/index.json");
    assert_int_equal(el_checkpoint_last(folder), 10);
}

static void events_go_into_a_file_of_the_folder_alone(void **state)
{
    struct stat info;
    put("letter");
    assert_int_equal(symlink("letter", in("events.csv")), 0);
    assert_int_equal(el_events_open(folder), -1);
    assert_true(stat(in("letter"), &info) == 0 && info.st_size == 0);
    assert_int_equal(unlink(in("events.csv")), 0);
    assert_int_equal(mkfifo(in("events.csv"), 0666), 0);
    assert_int_equal(el_events_open(folder), -1); /* nobody reads it */
}

static void a_path_is_never_cut(void **state)
{
    char longest[2 * EL_PATH_BYTES];
    struct el_checkpoint *checkpoint;
    memset(longest, 'x', sizeof longest);
    longest[EL_CHECKPOINT_DIR_BYTES] = 0;
    assert_int_equal(el_checkpoint_open(longest, &checkpoint), EL_ERR_INVALID);
    assert_non_null(strstr(el_error_message(), "the path is too long"));
    longest[EL_CHECKPOINT_DIR_BYTES - 1] = 0;
    el_checkpoint_folder(longest, INT64_MAX, false, path);
    assert_int_equal(strlen(path), EL_CHECKPOINT_DIR_BYTES - 1 + strlen("/step-9223372036854775807.part"));
}

RUN_TESTS(make_folder, remove_folder, what_links_lead_to_stays, only_a_folder_with_an_index_is_one,
          events_go_into_a_file_of_the_folder_alone, a_path_is_never_cut)
