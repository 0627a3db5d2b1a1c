/* The way from the command line to a subcommand, and how it ends. */
#include "bench/commands.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "bench/job/worker.h"

#define EL_VERSION "0.1.0"

int el_exit_failed(enum el_status status)
{
    if (status == EL_OK) return 0;
    fprintf(stderr, "evenload: %s\n", el_error_message());
    return status == EL_ERR_INVALID || status == EL_ERR_IO || status == EL_ERR_ABSENT ? EL_EXIT_USE : EL_EXIT_TRIAL;
}

void el_say_not_drawn(enum el_status status, FILE *messages)
{
    if (status == EL_ERR_ABSENT && messages)
        fprintf(messages, "not drawn: %s\n", el_error_message());
    else if (status != EL_OK && status != EL_ERR_ABSENT)
        fprintf(stderr, "evenload: not drawn: %s\n", el_error_message());
}

/* Where an earlier write failed its reason is gone, and so is what was to be written: a byte more asks again. */
int el_exit_flush(int exit_status)
{
    errno = 0;
    bool failed = fflush(stdout) != 0;
    if (!failed && !ferror(stdout)) return exit_status;
    if (!failed && fputc('\n', stdout) == '\n' && fflush(stdout) == 0) errno = 0;
    fprintf(stderr, "evenload: standard output cannot be written%s%s\n", errno ? ": " : " completely",
            errno ? strerror(errno) : "");
    return EL_EXIT_USE;
}

static void print_overview(FILE *file)
{
    fprintf(
        file,
        "usage: evenload COMMAND [options]\n\nMeasures how evenly, and how fast, several devices share the training "
        "of one model.\n\n");
    const char *group = "";
    for (const struct el_command_row *row = el_command_rows(); row->name; row++) {
        if (row->group != group) fprintf(file, "%s%s\n", *group ? "\n" : "", row->group);
        group = row->group;
        fprintf(file, "  %-9s  %s\n", row->name, row->brief);
    }
    fprintf(file, "\n'evenload COMMAND --help' lists its options. Start with 'evenload "
                  "compare'.\nExit status: 0 success, 1 a trial failed (--strict: or is not valid), 2 bad use or "
                  "something\nmissing, 130 interrupted; regress, baseline and watch have their own.\n");
}

static int print_version(void)
{
    printf("evenload %s (%s)\n", EL_VERSION, EL_BUILD_COMMIT);
    return el_exit_flush(0);
}

/* Of any command. */
static bool is_option(const char *name)
{
    const char *word = name + strspn(name, "-");
    for (const struct el_option_row *row = el_option_rows(); row->name; row++)
        if (name[1] == '-' && strlen(row->name) == strcspn(word, "=") && !strncmp(row->name, word, strlen(row->name)))
            return true;
    return false;
}

static const struct el_command_row *find_command(const char *name)
{
    const char *names[16] = {NULL};
    int n = 0;
    for (const struct el_command_row *row = el_command_rows(); row->name; row++) {
        if (!strcmp(row->name, name)) return row;
        names[n++] = row->name;
    }
    if (!strcmp(name, "study"))
        el_fail(EL_ERR_INVALID, "'study' is a preset now: 'evenload imbalance --preset two-cards --dry-run'");
    else if (name[0] == '-' && is_option(name))
        el_fail(EL_ERR_INVALID, "'%s' must follow the command: write 'evenload COMMAND %s'", name, name);
    else if (name[0] == '-')
        el_fail(EL_ERR_INVALID,
                "unknown option '%s': 'evenload --version' says the version, 'evenload --help' lists "
                "the commands",
                name);
    else
        el_fail_unknown("command", name, names);
    return NULL;
}

/* Of any command that does something. With fewer, a worker, a module or a dataset would not open, and each says another
 * reason. More ranks need more, which is checked where their number is known. */
static enum el_status check_open_files(void)
{
    enum { NEEDED = 32 };
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= NEEDED) return EL_OK;
    return el_fail(EL_ERR_INVALID, "%d open files are needed, and %llu are allowed: raise the limit (ulimit -n)",
                   NEEDED, (unsigned long long)limit.rlim_cur);
}

static int run_command(const struct el_command_row *command, int argc, char **argv)
{
    struct el_options *options = calloc(1, sizeof *options);
    if (!options) return el_exit_failed(el_fail_errno("options"));
    el_options_defaults(command->bit, options);
    enum el_status status = el_options_parse(command->bit, argc, argv, options);
    if (status == EL_OK) status = el_options_check_together(options);
    if (status == EL_OK && !options->help && !options->version) status = check_open_files();
    int exit_status;
    if (status != EL_OK) {
        exit_status = el_exit_failed(status);
    } else if (options->help) {
        el_options_help(stdout, command->bit);
        exit_status = el_exit_flush(0);
    } else if (options->version) {
        exit_status = print_version();
    } else {
        exit_status = command->run(options, argc, argv);
    }
    free(options);
    return exit_status;
}

/* `help --man`, `help --bash` ...: what `make install` installs beside the program. */
static int print_installed(const char *what)
{
    enum el_status status = EL_OK;
    if (!strcmp(what, "man"))
        el_options_manual(stdout, EL_VERSION);
    else
        status = el_options_completion(stdout, what);
    return status == EL_OK ? el_exit_flush(0) : el_exit_failed(status);
}

static int print_help(int argc, char **argv)
{
    if (argc < 3) {
        print_overview(stdout);
        return el_exit_flush(0);
    }
    if (!strncmp(argv[2], "--", 2)) return print_installed(argv[2] + 2);
    const struct el_command_row *command = find_command(argv[2]);
    if (!command) return el_exit_failed(EL_ERR_INVALID);
    el_options_help(stdout, command->bit);
    return el_exit_flush(0);
}

static void do_nothing(int number)
{
    (void)number;
}

/* Where a limit on files' sizes is reached a write shall fail and be reported. A handler, which ends at exec, so that
 * programs that are started have the signal as we had it. */
static void survive_file_limit(void)
{
    struct sigaction now, handled = {.sa_handler = do_nothing, .sa_flags = SA_RESTART};
    if (sigaction(SIGXFSZ, NULL, &now) == 0 && now.sa_handler == SIG_DFL) sigaction(SIGXFSZ, &handled, NULL);
}

int el_main(int argc, char **argv)
{
    survive_file_limit();
    const char *name = argc > 1 ? argv[1] : "help";
    if (!strcmp(name, "help") || !strcmp(name, "--help") || !strcmp(name, "-h")) return print_help(argc, argv);
    if (!strcmp(name, "--version") || !strcmp(name, "version")) return print_version();
    if (!strcmp(name, "worker") && argc > 2 && !strcmp(argv[2], "comm")) return el_cmd_comm_worker(argc - 2, argv + 2);
    if (!strcmp(name, "worker")) return el_worker_main(argc - 1, argv + 1);
    const struct el_command_row *command = find_command(name);
    if (!command) return el_exit_failed(EL_ERR_INVALID);
    return run_command(command, argc - 1, argv + 1);
}
