/* One launch of somebody's program: a command for the shell, as a job of one process (runtime/launch).
 *
 *     spec = (struct el_shell_spec){.command = "python train.py", .timeout_s = 300, .go_on = go_on};
 *     el_shell_run(&spec, &output);         output.text is what it printed; free(output.text)
 *
 * When the command has ended, or has to end, everything that it started is ended too, also where this process is
 * killed. SIGCHLD is set to its default. Standard input is empty.
 */
#ifndef EL_BENCH_REGRESS_SHELL_H
#define EL_BENCH_REGRESS_SHELL_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/base/status.h"

struct el_shell_spec {
    const char *command;
    double timeout_s;
    bool (*go_on)(void); /* asked about ten times a second; false ends the program */
};

struct el_shell_output {
    char *text;     /* owned; of standard output, ended by 0; a 0 within it is a blank */
    bool cancelled; /* by go_on: text is what there was */
};

/* Blocking. Errors: EL_ERR_INVALID (it ended with another status than 0, or by a signal, or printed more than 16 MiB:
 * with its last lines), EL_ERR_TIMEOUT, EL_ERR_IO (it could not be started). Then text is NULL. */
enum el_status el_shell_run(const struct el_shell_spec *spec, struct el_shell_output *output_p);

#endif
