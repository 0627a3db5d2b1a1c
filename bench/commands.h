/* The subcommands, and what they share: messages of failures. */
#ifndef EL_BENCH_COMMANDS_H
#define EL_BENCH_COMMANDS_H

#include "bench/base/exit.h"
#include "bench/campaign/campaign.h"
#include "bench/options/options.h"

/* `argv[0]` is the subcommand; options have been read once. */
int el_cmd_compare(const struct el_options *options, int argc, char **argv);
int el_cmd_run(const struct el_options *options, int argc, char **argv);
int el_cmd_devices(const struct el_options *options, int argc, char **argv);
int el_cmd_plot(const struct el_options *options, int argc, char **argv);
int el_cmd_selfcheck(const struct el_options *options, int argc, char **argv);
int el_cmd_overhead(const struct el_options *options, int argc, char **argv);
int el_cmd_baseline(const struct el_options *options, int argc, char **argv);
int el_cmd_regress(const struct el_options *options, int argc, char **argv);
int el_cmd_scale(const struct el_options *options, int argc, char **argv);
int el_cmd_imbalance(const struct el_options *options, int argc, char **argv);
int el_cmd_comm(const struct el_options *options, int argc, char **argv);
int el_cmd_watch(const struct el_options *options, int argc, char **argv);

struct el_launch_place;
/* `run` of a process that a user's mpirun or torchrun started (cmd_run_rank.c), as its environment says. */
int el_cmd_run_rank(const struct el_options *options, const struct el_launch_place *place);
/* A rank that `comm` started: "comm RESULT OPERATION --option=value ..." (cmd_comm.c). */
int el_cmd_comm_worker(int argc, char **argv);
/* `run --dry-run` (cmd_dry_run.c). */
int el_cmd_dry_run(const struct el_options *options);

/* Prints "evenload: <message>" on standard error and returns the exit status of this error. */
int el_exit_failed(enum el_status status);
/* Closes standard output. Returns 0 if all of it could be written, else an exit status. */
int el_exit_flush(int exit_status);
/* A figure could not be drawn and all else succeeded: prints the last error on standard error. That gnuplot is not
 * installed is printed to `messages` (NULL: not at all). EL_OK is legal. */
void el_say_not_drawn(enum el_status status, FILE *messages);

/* A copy of its own, to be freed; NULL: EL_ERR_HOST_MEMORY has been said. */
struct el_options *el_options_copy(const struct el_options *options);
/* Prints "Next: evenload COMMAND ..." with what `next` says but its folder, --quiet and --json, and `note`; frees
 * `next`. Returns whether it did: not for NULL, nor where the options are too long. */
bool el_say_next(unsigned command, struct el_options *next, const char *note);
/* The document of the folder in `dir`, for a command that shows records and measures nothing. Errors: those of
 * el_record_read; EL_ERR_INVALID: options that only a measurement takes, a record of `watch`. */
enum el_status el_read_records(const char *command, const struct el_options *options, json_t **run_p);
/* The options that the folder's run was begun with, by a command of this name. Errors: those of el_store_open and
 * el_store_load_command; EL_ERR_INVALID: what the file says is no option, or no value of it. */
enum el_status el_recall_command(unsigned command, const char *name, const char *dir, struct el_options *options_p);
/* After el_campaign_measure came to `status`: says where it was interrupted and `how` to go on, or shows what was
 * measured. Ends the campaign. Returns the exit status. */
int el_end_campaign(struct el_campaign *campaign, enum el_status status, const char *how,
                    enum el_status (*show)(const struct el_campaign *campaign));

/* Reads the command line of a subcommand, and prints its help or runs it. */
int el_main(int argc, char **argv);

#endif
