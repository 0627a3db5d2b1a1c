/* The subcommands, and what they share. */
#pragma once

#include "bench/campaign/campaign.h"
#include "bench/options/options.h"

/* A subcommand. It owns its read options. *exit_status_p is 0 before; on failure 0 stands for the error's own. el_main
 * prints errors and flushes standard output. */
#define EL_COMMAND_FUNCTION(bit, function, name)                                                                       \
    enum el_status el_cmd_##function(struct el_options *options, int *exit_status_p);
EL_COMMANDS(EL_COMMAND_FUNCTION)

struct el_launch_place;
/* `run` as a rank of the user's mpirun or torchrun, with the environment's place. */
enum el_status el_cmd_run_rank(struct el_options *options, const struct el_launch_place *place, int *exit_status_p);
/* A rank started by `comm`: "comm RESULT OPERATION --option=value ...". */
struct el_worker;
enum el_status el_cmd_comm_worker(struct el_worker *worker);
/* Whether this process is a launcher's rank, by --launcher rank or its environment. Errors: EL_ERR_INVALID, also if
 * --devices would give each of several ranks its own job (--launcher allows it). */
enum el_status el_takes_place(const struct el_options *options, struct el_launch_place *place_p, bool *rank_p);
/* `run --dry-run`. */
enum el_status el_cmd_dry_run(const struct el_options *options, int *exit_status_p);

/* Prints "evenload: <message>" on standard error. Returns the error's exit status. */
int el_exit_failed(enum el_status status);
/* "evenload: interrupted", and its exit status. */
int el_exit_interrupted(void);
/* Flushes standard output. Returns `exit_status`, or an error's if not all was written. */
int el_exit_flush(int exit_status);
/* Prints "Next: evenload COMMAND ..." with `next`'s options and `note`; removes folder, --quiet and --json from `next`.
 * false: the options are too long. */
bool el_say_next(unsigned command, struct el_options *next, const char *note);
/* Reads the run in `dir` for a command that measures nothing. Errors: el_record_read's; EL_ERR_INVALID: options for
 * measuring, or a record of `watch`. */
enum el_status el_read_records(const char *command, const struct el_options *options, json_t **run_p);
/* Ends a campaign after el_campaign_measure's `status`: reports an interruption and `how` to resume (NULL: impossible),
 * or shows the result; `show` may change the trials' exit_status. Returns `status`, or that of `show`. */
enum el_status el_end_campaign(struct el_campaign *campaign, enum el_status status, const char *how,
                               enum el_status (*show)(struct el_campaign *campaign), int *exit_status_p);

int el_main(int argc, char **argv);

/* Ends with a row without a bit (command_rows.c). */
const struct el_command_row *el_command_rows(void);
