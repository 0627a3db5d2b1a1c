/* The subcommands, and what they share: messages of failures. */
#pragma once

#include "bench/campaign/campaign.h"
#include "bench/options/options.h"

/* A subcommand's own part; its options have been read, and are its own to change. *exit_status_p is 0 before: what it
 * ends with. Where it fails and leaves that 0, el_main has the error's. el_main prints what failed, and ends standard
 * output. */
#define EL_COMMAND_FUNCTION(bit, function, name)                                                                       \
    enum el_status el_cmd_##function(struct el_options *options, int *exit_status_p);
EL_COMMANDS(EL_COMMAND_FUNCTION)

struct el_launch_place;
/* `run` of a process that a user's mpirun or torchrun started (cmd_run_rank.c), as its environment says. */
enum el_status el_cmd_run_rank(struct el_options *options, const struct el_launch_place *place, int *exit_status_p);
/* A rank that `comm` started: "comm RESULT OPERATION --option=value ..." (cmd_comm.c). */
struct el_worker;
enum el_status el_cmd_comm_worker(struct el_worker *worker);
/* Whether this process is to take its place among a launcher's ranks, as --launcher rank or its environment says.
 * Errors: EL_ERR_INVALID, also where --devices would give each of several ranks a job of its own (--launcher asks for
 * that). */
enum el_status el_takes_place(const struct el_options *options, struct el_launch_place *place_p, bool *rank_p);
/* `run --dry-run` (cmd_dry_run.c). */
enum el_status el_cmd_dry_run(const struct el_options *options, int *exit_status_p);

/* Prints "evenload: <message>" on standard error and returns the exit status of this error. */
int el_exit_failed(enum el_status status);
/* "evenload: interrupted", and its exit status. */
int el_exit_interrupted(void);
/* Closes standard output. Returns 0 if all of it could be written, else an exit status. */
int el_exit_flush(int exit_status);
/* Prints "Next: evenload COMMAND ..." with what `next` says but its folder, --quiet and --json (which it loses), and
 * `note`. Returns whether it did: not where the options are too long. */
bool el_say_next(unsigned command, struct el_options *next, const char *note);
/* The document of the folder in `dir`, for a command that shows records and measures nothing. Errors: those of
 * el_record_read; EL_ERR_INVALID: options that only a measurement takes, a record of `watch`. */
enum el_status el_read_records(const char *command, const struct el_options *options, json_t **run_p);
/* After el_campaign_measure came to `status`: says where it was interrupted and `how` to go on (NULL: nothing can), or
 * shows what was measured; `show` may change its exit_status, which the trials give. Ends the campaign. Returns
 * `status`, or that of `show`. */
enum el_status el_end_campaign(struct el_campaign *campaign, enum el_status status, const char *how,
                               enum el_status (*show)(struct el_campaign *campaign), int *exit_status_p);

/* Reads the command line of a subcommand, and prints its help or runs it. */
int el_main(int argc, char **argv);

/* The subcommands, ended by a row without a bit (command_rows.c). */
const struct el_command_row *el_command_rows(void);
