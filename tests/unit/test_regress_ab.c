/* Launching programs and a whole session of two, with shell commands whose figures are known: each program counts its
 * own launches in a file, and prints a row of scatter by that count. */
#include "tests/test.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/options/options.h"
#include "bench/regress/launches.h"
#include "runtime/base/clock.h"
#include "tests/unit/own_folder.h"

static enum el_status run(const char *command, double timeout_s, struct el_shell_output *output_p)
{
    const struct el_shell_spec spec = {.command = command, .timeout_s = timeout_s};
    return el_shell_run(&spec, output_p);
}

static void assert_prints(const char *command, const char *text)
{
    struct el_shell_output output;
    assert_int_equal(run(command, 30, &output), EL_OK);
    assert_string_equal(output.text, text);
    free(output.text);
}

static void assert_fails(const char *command, double timeout_s, enum el_status status, const char *words)
{
    struct el_shell_output output;
    assert_int_equal(run(command, timeout_s, &output), status);
    assert_null(output.text);
    if (!strstr(el_error_message(), words)) fail_msg("no '%s' in '%s'", words, el_error_message());
}

static void test_shell(void **state)
{
    struct el_shell_output output;
    assert_prints("echo a 1; echo noise >&2; printf 'b 2'; cat", "a 1\nb 2"); /* standard input is empty */
    assert_prints("true", "");
    assert_prints("printf 'a 1\\000\\nb 2'", "a 1 \nb 2");   /* what is printed behind a zero byte counts */
    assert_int_equal(run("seq 200000", 10, &output), EL_OK); /* more than a pipe holds */
    assert_int_equal(strlen(output.text), 1288895);
    free(output.text);
}

static void test_shell_failures(void **state)
{
    assert_fails("seq 100 >&2; exit 3", 10, EL_ERR_INVALID, "ended with exit status 3; its last lines: 98 | 99 | 100");
    assert_fails("echo why; kill -9 $$", 10, EL_ERR_INVALID, "was ended by signal 9 (Killed); its last lines: why");
    assert_fails("no-such-program-here", 10, EL_ERR_INVALID, "exit status 127");
    assert_fails("yes 0123456789012345678901234567890123456789", 20, EL_ERR_INVALID, "16 MiB");
    signal(SIGCHLD, SIG_IGN); /* it is known all the same */
    assert_fails("exit 3", 10, EL_ERR_INVALID, "exit status 3");
}

/* The numbers that are in the folder's file, when they are all there. */
static bool read_pids(const char *name, int n, long *pids)
{
    char path[64];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "r");
    bool all = file != NULL;
    for (int i = 0; i < n && all; i++) all = fscanf(file, "%ld", &pids[i]) == 1; /* NOLINT(cert-err34-c): our own */
    if (file) fclose(file);
    return all;
}

/* What a command leaves behind ends with it, at its time limit too, in its group and out of it, for it would disturb
 * every later launch; and nobody waits for its pipes. */
static void test_shell_leaves_nothing(void **state)
{
    char command[512];
    int64_t begin_ns = el_clock_ns();
    long pids[2];
    snprintf(command, sizeof command,
             "sleep 60 & echo $! >%s/left; setsid sh -c 'sleep 60 & echo $! >>%s/left; wait' & "
             "while [ $(wc -l <%s/left) -lt 2 ]; do :; done; echo a 1",
             folder, folder, folder);
    assert_prints(command, "a 1\n");
    assert_fails("sleep 60; echo a 1", 0.2, EL_ERR_TIMEOUT, "did not end within 0.2 s");
    assert_fails("trap '' TERM; sleep 60 & wait; sleep 60", 0.2, EL_ERR_TIMEOUT, "did not end within 0.2 s");
    assert_true(el_clock_ns() - begin_ns < 20 * 1000000000LL);
    assert_true(read_pids("left", 2, pids));
    for (int i = 0; i < 2; i++) assert_int_equal(kill((pid_t)pids[i], 0), -1);
}

/* The one who launches is killed, and can end nothing itself: a child of the shell, and one that has left its group. */
static void test_nothing_outlives_a_killed_launcher(void **state)
{
    char command[512];
    long pids[2];
    struct el_shell_output output;
    snprintf(command, sizeof command,
             "sleep 60 & echo $! >%s/one; setsid sh -c 'echo $$ >>%s/one; exec sleep 60' & "
             "while [ $(wc -l <%s/one) -lt 2 ]; do :; done; mv %s/one %s/two; wait",
             folder, folder, folder, folder, folder);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    pid_t launcher = fork();
    if (launcher == 0) _exit(run(command, 30, &output) == EL_OK ? 0 : 1);
    for (int i = 0; i < 1000 && !read_pids("two", 2, pids); i++) usleep(10000);
    assert_true(read_pids("two", 2, pids));
    kill(launcher, SIGKILL);
    bool gone = false;
    for (int i = 0; i < 1000 && !gone; i++) {
        while (waitpid(-1, NULL, WNOHANG) > 0) continue;
        gone = kill((pid_t)pids[0], 0) != 0 && kill((pid_t)pids[1], 0) != 0;
        usleep(10000);
    }
    assert_true(gone);
}

/* What a shell leaves behind is ended; children of this process that have nothing to do with it are not, nor does this
 * process adopt orphans afterwards. */
static void test_other_children_are_left_alone(void **state)
{
    int adopts = -1, status;
    pid_t other = fork();
    if (other == 0) {
        pause();
        _exit(0);
    }
    assert_prints("setsid sh -c 'exec sleep 30' >/dev/null 2>&1 & echo a 1", "a 1\n");
    assert_prints("setsid env -i sleep 30 >/dev/null 2>&1 & sleep 0.1; echo a 1", "a 1\n"); /* has no environment */
    assert_int_equal(waitpid(other, &status, WNOHANG), 0);
    assert_int_equal(prctl(PR_GET_CHILD_SUBREAPER, &adopts), 0);
    assert_int_equal(adopts, 0);
    kill(other, SIGKILL);
    assert_int_equal(waitpid(-1, &status, 0), other);
    assert_int_equal(waitpid(-1, &status, WNOHANG), -1);
}

/* Launch n prints 100 + (7 n mod 11) / 10, times `scale`; and what else is given. */
static const char *program(char text[512], const char *name, double scale, const char *rest)
{
    snprintf(text, 512,
             "n=$(cat %s/%s 2>/dev/null || echo 0); echo $((n + 1)) >%s/%s; v=$(( (1000 + n * 7 %% 11) * %d )); "
             "echo step $v us; %s",
             folder, name, folder, name, (int)(scale * 1000), rest);
    return text;
}

static void forget(void)
{
    char path[64];
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, i ? "head" : "base");
        unlink(path);
    }
}

static struct el_options options;
#define ASKED options.regress
static struct el_regress_set set; /* of the last session */

/* Two commands interleaved; what else is asked for is set in `options` behind it. */
static struct el_regress_launching asking(const char *base, const char *head)
{
    forget();
    el_options_defaults(EL_CMD_REGRESS, &options);
    snprintf(ASKED.ab, sizeof ASKED.ab, "%s", base);
    snprintf(options.dir, sizeof options.dir, "%s", head);
    options.timeout_s = 20;
    return (struct el_regress_launching){.options = &options};
}

static void run_ab(struct el_regress_launching *ask, int blocks)
{
    el_regress_free(&set);
    assert_int_equal(el_regress_ab(ask, &set), EL_OK);
    assert_int_equal(set.blocks, blocks);
}

static void test_session(void **state)
{
    char base[512], head[512];
    /* 14 blocks: at the first analysis it stands. */
    struct el_regress_launching ask =
        asking(program(base, "base", 1, "echo peak 64 B"), program(head, "head", 1.1, "echo peak 64 B"));
    run_ab(&ask, 14);
    assert_int_equal(el_regress_outcome(&set), EL_REGRESS_FOUND);
    assert_int_equal(set.n, 2);
    assert_int_equal(set.cells[0].n_base, 14);
    assert_int_equal(set.cells[0].n_head, 14);
    for (int i = 0; i < 14; i++) assert_true(set.cells[0].base[i] == (1000 + i * 7 % 11) * 1000);
    assert_true(fabs(set.cells[0].effect - 1.1) < 1e-3);
    assert_int_equal(set.cells[1].kind, EL_CELL_EXACT);
    assert_int_equal(set.cells[1].verdict, EL_CELL_SAME);
}

/* Bytes that differ among launches of one side, whichever, are judged as what has noise; only a name insists. */
static void test_bytes_with_noise(void **state)
{
    char base[512], head[512];
    for (int side = 0; side < 3; side++) {
        struct el_regress_launching ask =
            asking(program(base, "base", 1, side == 0 ? "echo sent $v B" : "echo sent 1000000 B"),
                   program(head, "head", 1, side == 0 ? "echo sent 1000000 B" : "echo sent $v B"));
        strcpy(ASKED.metrics, "sent");
        snprintf(ASKED.exact, sizeof ASKED.exact, "%s", side == 2 ? "sent" : "");
        ASKED.blocks = 3;
        run_ab(&ask, side == 2 ? 2 : 3); /* the second launch shows it */
        assert_int_equal(set.cells[0].kind, side == 2 ? EL_CELL_EXACT : EL_CELL_PAIRED);
        assert_true((el_regress_outcome(&set) == EL_REGRESS_USE) == (side == 2));
    }
}

/* Off a terminal a line a minute, also within a launch; and the budget that ends too early, at once. */
static void test_progress(void **state)
{
    static const int64_t MINUTE_NS = 60000000000;
    char *text = NULL;
    size_t bytes = 0;
    struct el_regress_launching ask = asking("echo t 5 ms", "echo t 5 ms");
    ask.out = open_memstream(&text, &bytes);
    ask.period_ns = MINUTE_NS;
    ask.begin_ns = ask.line_ns = el_clock_ns() - 2 * MINUTE_NS;
    ASKED.blocks = 10;
    ASKED.budget_s = 0;
    run_ab(&ask, 1);
    el_regress_progress_wait(&ask); /* the minute has not passed again */
    ask.line_ns -= MINUTE_NS;
    el_regress_progress_wait(&ask);
    fclose(ask.out);
    assert_non_null(strstr(text, "1 cell; a block takes "));
    assert_non_null(strstr(text, "note: --budget of 0 s ends after about 1 block, before the first analysis: this run "
                                 "will be inconclusive: 8 blocks, "));
    const char *line = strstr(text, "\nblock 1 of 10, 120 s\n");
    assert_non_null(line);
    assert_non_null(strstr(line + 1, "\nblock 1 of 10, 120 s\n"));
    assert_null(strstr(strstr(line + 1, "\nblock ") + 1, "\nblock "));
    free(text);
}

/* The order is drawn: over 30 blocks either goes first sometimes, another seed is another order, and launches follow
 * it. */
static void test_order(void **state)
{
    char command[2][512], orders[2][512] = {"", ""};
    for (int seed = 0; seed < 2; seed++) {
        for (int side = 0; side < 2; side++)
            snprintf(command[side], sizeof command[side], "printf %d >>%s/order%d; echo t 5 ms", side, folder, seed);
        struct el_regress_launching ask = asking(command[0], command[1]);
        ASKED.blocks = 5;
        options.train.seed = (uint64_t)seed;
        run_ab(&ask, 5);
        char path[64];
        snprintf(path, sizeof path, "%s/order%d", folder, seed);
        FILE *file = fopen(path, "r");
        assert_non_null(file);
        assert_non_null(fgets(orders[seed], sizeof orders[seed], file));
        fclose(file);
        assert_int_equal(strlen(orders[seed]), 10);
        for (int b = 0; b < 5; b++) {
            assert_int_not_equal(orders[seed][2 * b], orders[seed][2 * b + 1]); /* a block is one of each */
            assert_int_equal(orders[seed][2 * b] - '0', el_regress_first_side((uint64_t)seed, b + 1));
        }
    }
    int head_first = 0, differs = 0;
    for (int b = 1; b <= 30; b++) {
        head_first += el_regress_first_side(0, b);
        differs += el_regress_first_side(0, b) != el_regress_first_side(1, b);
    }
    assert_in_range(head_first, 6, 24);
    assert_in_range(differs, 6, 24);
}

static void test_ends(void **state)
{
    char base[512], head[512];
    struct el_regress_launching ask = asking(program(base, "base", 1, ""), program(head, "head", 1.5, ""));
    ASKED.max_samples = 7; /* too few to tell anything */
    run_ab(&ask, 7);
    assert_true(set.last_analysis && el_regress_outcome(&set) == EL_REGRESS_INCONCLUSIVE);
    assert_int_equal(set.cells[0].more, 1);
    ask = asking(base, head);
    ASKED.budget_s = 0; /* one block, and no more */
    run_ab(&ask, 1);
    assert_int_equal(el_regress_outcome(&set), EL_REGRESS_INCONCLUSIVE);
}

static enum el_regress_exit outcome_of(const char *head, const char *metrics, const char *exact, char reason[200])
{
    struct el_regress_launching ask = asking("echo step 5 ms; echo peak 64 B", head);
    snprintf(ASKED.metrics, sizeof ASKED.metrics, "%s", metrics);
    snprintf(ASKED.exact, sizeof ASKED.exact, "%s", exact);
    ASKED.blocks = 8; /* the least that can be significant */
    el_regress_free(&set);
    enum el_status status = el_regress_ab(&ask, &set);
    enum el_regress_exit outcome = status == EL_OK ? el_regress_outcome(&set) : EL_REGRESS_USE;
    snprintf(reason, 200, "%s", status == EL_OK ? "" : el_error_message());
    for (size_t i = 0; i < set.n && status == EL_OK; i++)
        if (set.cells[i].verdict == EL_CELL_UNREADABLE || !*reason) snprintf(reason, 200, "%s", set.cells[i].reason);
    return outcome;
}

static void test_bad_programs(void **state)
{
    static const struct {
        const char *head, *metrics, *exact;
        enum el_regress_exit outcome;
        const char *words;
    } cases[] = {
        {"echo step 5 ms; echo peak 64 B", "", "", EL_REGRESS_NONE, ""},
        {"echo step 5 ms; echo peak 65 B", "", "", EL_REGRESS_FOUND, "was 64 B, is 65"},
        {"echo step 5 ms; echo peak 65 B", "step", "", EL_REGRESS_NONE, ""},
        {"echo step 5 ms; echo peak 63 B", "", "", EL_REGRESS_NONE, "was 64 B, is 63"},
        {"echo step 6 ms; echo peak 64 B", "", "step", EL_REGRESS_FOUND, "was 5 ms, is 6"},
        {"echo peak 64 B", "", "", EL_REGRESS_USE, "the head did not print it in block 1"},
        {"echo step 5 ms; echo peak 64 B; echo new 1 ms", "", "", EL_REGRESS_USE,
         "the base did not print it in block 1"},
        {"echo step 5 s; echo peak 64 B", "", "", EL_REGRESS_FOUND, "worse by 99900"},
        {"echo step 5 J; echo peak 64 B", "", "", EL_REGRESS_USE, "its unit is"},
        {"echo step 5 ms; echo step 6000 us; echo step 6000 us; echo peak 64 B", "", "", EL_REGRESS_USE,
         "the head prints it in 'ms' and in 'us' in one launch, of block 1"},
        {"echo step 5 ms; echo peak 64 B; echo peak 1 KiB", "step", "", EL_REGRESS_NONE, ""},
        {"echo step nan ms; echo peak 64 B", "", "", EL_REGRESS_USE, "is not a number"},
        {"echo step 0 ms; echo peak 64 B", "", "", EL_REGRESS_USE, "is 0"},
        {"echo step 5 ms; echo peak 64 B", "setp", "", EL_REGRESS_USE, "neither program prints 'setp'"},
        {"seq 1001 | sed 's/.*/m& & ms/'", "", "", EL_REGRESS_USE,
         "more than 1000 metrics are printed: choose some by --metric"},
        {"seq 1001 | sed 's/.*/m& &/'; echo step 5 ms", "step", "", EL_REGRESS_NONE, ""},
        {"echo step 5 ms; echo peak 64 B; echo accuracy 71 %", "", "", EL_REGRESS_NONE, ""},
        {"echo step 5 ms; echo peak 64 B; echo loss 0.5; echo epoch 1; echo loss nan", "", "", EL_REGRESS_NONE, ""},
        {"echo step 5 ms; echo peak 65 B; echo loss 0.5", "", "", EL_REGRESS_FOUND, "was 64 B, is 65"},
        {"echo step 5 ms; echo accuracy 71 %", "step,accuracy", "", EL_REGRESS_USE,
         "its unit '%' does not say which way is better: give --higher or --lower accuracy"},
        {"echo step 5 ms; echo peak 64 B; echo loss 1; echo loss 2 ms", "", "", EL_REGRESS_USE,
         "no unit says which way is better"},
        {"echo hello; exit 1", "", "", EL_REGRESS_USE, "head, block 1: ended with exit status 1"},
        {"echo hello world of mine", "", "", EL_REGRESS_USE, "head, block 1: printed no metric"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char reason[200];
        enum el_regress_exit outcome = outcome_of(cases[i].head, cases[i].metrics, cases[i].exact, reason);
        if (outcome != cases[i].outcome || strstr(reason, cases[i].words) == NULL)
            fail_msg("case %zu: exit %d, '%s'", i, (int)outcome, reason);
    }
}

static int launches_left;

static bool go_on_for_a_while(void)
{
    return launches_left-- > 0;
}

/* Interrupted within a block: whole blocks only are kept. */
static void test_interrupted(void **state)
{
    struct el_regress_launching ask = asking("echo step 5 ms; sleep 0.02", "echo step 5 ms; sleep 0.02");
    ask.go_on = go_on_for_a_while;
    launches_left = 15;
    el_regress_free(&set);
    assert_int_equal(el_regress_ab(&ask, &set), EL_OK);
    assert_in_range(set.blocks, 1, 13);
    assert_true(set.last_analysis);
    assert_int_equal(set.cells[0].n_base, set.blocks);
    assert_int_equal(set.cells[0].n_head, set.blocks);
}

static int free_all(void **state)
{
    el_regress_free(&set);
    return remove_folder(state);
}

RUN_TESTS(make_folder, free_all, test_other_children_are_left_alone, test_shell, test_shell_failures,
          test_shell_leaves_nothing, test_nothing_outlives_a_killed_launcher, test_session, test_bytes_with_noise,
          test_progress, test_order, test_ends, test_bad_programs, test_interrupted)
