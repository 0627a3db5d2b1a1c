/* From the command line to a subcommand, and what several share. */
#include "bench/commands.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "bench/base/io.h"
#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "bench/explain/explain.h"
#include "bench/fleet/fleet.h"
#include "bench/job/worker.h"
#include "bench/page/page.h"
#include "bench/record/record.h"
#include "bench/verify/verify.h"
#include "runtime/launch/launch.h"

#define EL_VERSION "0.1.0"

int el_exit_failed(enum el_status status)
{
    if (status == EL_OK) return 0;
    fprintf(stderr, "evenload: %s\n", el_error_message());
    bool use = status == EL_ERR_INVALID || status == EL_ERR_IO || status == EL_ERR_NO_ROOM || status == EL_ERR_ABSENT;
    return use ? EL_EXIT_USE : EL_EXIT_TRIAL;
}

int el_exit_interrupted(void)
{
    fprintf(stderr, "evenload: interrupted\n");
    return EL_EXIT_INTERRUPTED;
}

/* An earlier failed write has lost its errno and its data: one more byte asks again. */
int el_exit_flush(int exit_status)
{
    errno = 0;
    bool failed = fflush(stdout) != 0;
    if (!failed && !ferror(stdout)) return exit_status;
    if (!failed && fputc('\n', stdout) == '\n' && fflush(stdout) == 0) errno = 0;
    fprintf(stderr, "evenload: standard output cannot be written%s%s\n", errno ? ": " : " completely",
            errno ? strerror(errno) : "");
    if (!freopen("/dev/null", "w", stdout)) return EL_EXIT_USE; /* reported, once */
    return EL_EXIT_USE;
}

/* ---- what several subcommands do alike ---- */

bool el_say_next(unsigned command, struct el_options *next, const char *note)
{
    char line[2 * EL_PATH_BYTES];
    next->out[0] = 0;
    next->quiet = next->json = false;
    bool fits = el_options_command_line(command, next, line, sizeof line) == EL_OK;
    if (fits) el_text_line(stdout, "Next: %s%s%s", el_program_word(), line + strlen("evenload"), note);
    return fits;
}

enum el_status el_takes_place(const struct el_options *options, struct el_launch_place *place_p, bool *rank_p)
{
    enum el_status status = el_launch_environment(el_launch_getenv, NULL, place_p);
    if (status != EL_OK && options->launch != EL_LAUNCH_SELF) return status;
    if (options->launch == EL_LAUNCH_RANK && !place_p->is_rank)
        return el_fail(EL_ERR_INVALID,
                       "--launcher rank: no launcher started this process; use mpirun -n N (or torchrun "
                       "--no_python --nproc_per_node N) evenload ..., or leave --launcher rank out");
    bool told = options->launch == EL_LAUNCH_AUTO && place_p->is_rank;
    if (told && place_p->size > 1 && options->n_devices > 0 && !el_option_given(options, "launcher"))
        return el_fail(EL_ERR_INVALID,
                       "--devices is given, and %s started %d ranks, each of which would run a job of its own on these "
                       "devices: leave --devices out, so that each rank takes one; or give --launcher self",
                       place_p->launcher, place_p->size);
    bool alone = options->launch == EL_LAUNCH_AUTO && !place_p->is_rank;
    if (alone && el_launch_getenv(NULL, "MASTER_ADDR") && !options->quiet)
        fprintf(stderr, "evenload: MASTER_ADDR is set, but RANK and WORLD_SIZE are not: this process is no rank, and "
                        "starts a job of its own\n");
    *rank_p = options->launch == EL_LAUNCH_RANK || (told && options->n_devices == 0);
    return EL_OK;
}

static enum el_status check_has_trials(const char *command, const char *dir)
{
    const struct el_printed_kind *kind = el_printed_in(dir);
    char path[EL_PATH_BYTES + 16];
    snprintf(path, sizeof path, "%s/results.json", dir);
    if (!kind || access(path, F_OK) == 0) return EL_OK;
    return el_fail(EL_ERR_INVALID,
                   "%s is a folder of 'evenload %s': %s reads those of run, compare, scale, imbalance and data", dir,
                   kind->command, command);
}

enum el_status el_read_records(const char *command, const struct el_options *options, json_t **run_p)
{
    char path[EL_PATH_BYTES + 16];
    json_t *run;
    EL_TRY(el_options_check_records_alone(command, options));
    EL_TRY(check_has_trials(command, options->dir));
    if (access(options->dir, F_OK) != 0 && errno == ENOENT)
        return el_fail(EL_ERR_INVALID, "%s: %s does not exist: give a folder with a record", command, options->dir);
    snprintf(path, sizeof path, "%s/results.json", options->dir);
    EL_TRY(el_record_read(path, &run));
    if (json_object_get(run, "watch")) {
        json_decref(run);
        return el_fail(EL_ERR_INVALID,
                       "%s was watched from outside, where neither memory by tag nor counts of devices can be seen: "
                       "'evenload plot %s' draws what there is",
                       options->dir, options->dir);
    }
    *run_p = run;
    return EL_OK;
}

static void say_again(const char *command)
{
    const char *rest = strchr(command, ' ');
    if (rest) el_text_line(stdout, "Again: %s%s", el_program_word(), rest);
}

enum el_status el_end_campaign(struct el_campaign *campaign, enum el_status status, const char *how,
                               enum el_status (*show)(struct el_campaign *campaign), int *exit_status_p)
{
    if (el_runner_interrupted()) {
        el_exit_failed(status);
        if (how) el_campaign_say_interrupted(campaign, how);
        *exit_status_p = how ? EL_EXIT_INTERRUPTED : el_exit_interrupted();
        status = EL_OK;
    } else if (status == EL_OK) {
        campaign->exit_status = el_campaign_exit_status(campaign);
        status = show(campaign);
        if (campaign->command & (EL_CMD_COMPARE | EL_CMD_SCALE) && !campaign->options->json)
            say_again(el_json_text(campaign->run, "command", ""));
        *exit_status_p = campaign->exit_status;
        if (campaign->no_launcher[0]) fprintf(stderr, "evenload: %s\n", campaign->no_launcher);
    }
    el_campaign_end(campaign);
    return status;
}

static void print_overview(FILE *file)
{
    fprintf(file, "usage: evenload COMMAND [options]\n\nMeasures how evenly, and how fast, several devices share the "
                  "training of one model.\n\n");
    const char *group = "";
    for (const struct el_command_row *row = el_command_rows(); row->bit; row++) {
        if (row->group != group) fprintf(file, "%s%s\n", *group ? "\n" : "", row->group);
        group = row->group;
        fprintf(file, "  %-11s  %s\n", el_command_name(row->bit), row->brief);
    }
    fprintf(file, "\n'evenload COMMAND --help' shows its common options and examples, '--help all' every option.\n"
                  "'evenload help environment' lists the environment variables. Start with 'evenload compare'.\n"
                  "Exit status: 0 success, 1 a trial failed (--strict: or is not valid), 2 wrong usage or something\n"
                  "missing, 130 interrupted; regress, baseline, fleet and watch have their own.\n");
}

static void print_version(void)
{
    printf("evenload %s (%s)\n", EL_VERSION, EL_BUILD_COMMIT);
}

static const struct el_command_row *find_command(const char *name)
{
    const char *names[32] = {NULL};
    int n = 0;
    for (const struct el_command_row *row = el_command_rows(); row->bit; row++) {
        names[n] = el_command_name(row->bit);
        if (!strcmp(names[n++], name)) return row;
    }
    if (!strncmp(name, "--", 2) && el_option_find(name + 2, strcspn(name + 2, "="))) /* of any command */
        el_fail(EL_ERR_INVALID, "'%s' must follow the command: write 'evenload COMMAND %s'", name, name);
    else if (name[0] == '-')
        el_fail(EL_ERR_INVALID,
                "unknown option '%s': 'evenload --version' says the version, 'evenload --help' lists the commands",
                name);
    else
        el_fail_unknown("command", name, names);
    return NULL;
}

static enum el_status check_limit(int resource, int needed, int unit, const char *what, const char *option)
{
    struct rlimit limit;
    if (getrlimit(resource, &limit) != 0 || limit.rlim_cur >= (rlim_t)needed * (rlim_t)unit) return EL_OK;
    return el_fail(EL_ERR_INVALID, "%d %s are needed, and %llu are allowed: raise the limit (ulimit %s)", needed, what,
                   (unsigned long long)limit.rlim_cur / (unsigned)unit, option);
}

static int end(enum el_status status, int exit_status)
{
    if (status == EL_OK) return el_exit_flush(exit_status);
    int failed = el_exit_failed(status);
    return exit_status ? exit_status : failed;
}

/* With fewer open files workers, modules or datasets fail with misleading errors. Larger jobs check their own need. */
static int run_command(const struct el_command_row *command, int argc, char **argv)
{
    struct el_options options;
    int exit_status = 0;
    el_options_defaults(command->bit, &options);
    enum el_status status = el_options_parse(command->bit, argc, argv, &options);
    options.argc = argc;
    options.argv = argv;
    if (status == EL_OK) status = el_options_check_together(&options);
    if (status == EL_OK && options.help)
        el_options_help(stdout, command, options.help_all);
    else if (status == EL_OK && options.version)
        print_version();
    else if (status == EL_OK && (status = check_limit(RLIMIT_NOFILE, 32, 1, "open files", "-n")) == EL_OK) {
        if (options.one_gpu && !options.quiet)
            fputs("evenload: --devices cuda:1 is one GPU, cuda:0; GPU 1 alone is --devices cuda:1,\n", stderr);
        status = command->run(&options, &exit_status);
    }
    return end(status, exit_status);
}

static enum el_status print_help(int argc, char **argv)
{
    if (argc == 3 && !strcmp(argv[2], "environment")) {
        el_variables_help(stdout);
        return EL_OK;
    }
    bool all = argc == 4 && !strcmp(argv[3], "all");
    const struct el_command_row *command = find_command(argv[2]);
    if (!command) return EL_ERR_INVALID;
    if (argc > 4 || (argc == 4 && !all))
        return el_fail(EL_ERR_INVALID, "unexpected argument '%s': write 'evenload help %s all'", argv[3], argv[2]);
    el_options_help(stdout, command, all);
    return EL_OK;
}

static void do_nothing(int number)
{
    (void)number;
}

/* At the file-size limit writes shall fail and be reported. A handler, unlike SIG_IGN, ends at exec. */
static void survive_file_limit(void)
{
    struct sigaction now, handled = {.sa_handler = do_nothing, .sa_flags = SA_RESTART};
    if (sigaction(SIGXFSZ, NULL, &now) == 0 && now.sa_handler == SIG_DFL) sigaction(SIGXFSZ, &handled, NULL);
}

static const struct el_worker_row workers[] = {{"measure", EL_CMD_RUN, 4, el_worker_measure},
                                               {"gate", EL_CMD_RUN, 4, el_worker_gate},
                                               {"comm", EL_CMD_COMM, 1, el_cmd_comm_worker},
                                               {"verify", EL_CMD_VERIFY, 4, el_verify_worker},
                                               {"explain", EL_CMD_EXPLAIN, 2, el_explain_worker},
                                               {"fleet", EL_CMD_FLEET, 4, el_fleet_worker},
                                               {"fleet-agent", EL_CMD_FLEET, 5, el_fleet_agent_worker},
                                               {.kind = NULL}};

int el_main(int argc, char **argv)
{
    survive_file_limit();
    /* Thread stacks have this limit; without the check SIGSEGV would end the process without a message. */
    if (check_limit(RLIMIT_STACK, 1024, 1024, "KiB of stack", "-s") != EL_OK) return end(EL_ERR_INVALID, 0);
    const char *name = argc > 1 ? argv[1] : "help";
    bool help = !strcmp(name, "help") || !strcmp(name, "--help") || !strcmp(name, "-h");
    if (help && argc > 2) return end(print_help(argc, argv), 0);
    if (!strcmp(name, "worker")) return el_worker_main(workers, argc - 2, argv + 2);
    if (help)
        print_overview(stdout);
    else if (!strcmp(name, "--version") || !strcmp(name, "version"))
        print_version();
    else {
        const struct el_command_row *command = find_command(name);
        return command ? run_command(command, argc - 1, argv + 1) : el_exit_failed(EL_ERR_INVALID);
    }
    return el_exit_flush(0);
}
