/* Whether the kernel ended a process because memory ran out: all that is known about a SIGKILL without the log.
 *
 *     before = el_oom_kills("");
 *     ... a process is killed ...
 *     el_oom_explain(before, el_oom_kills(""), words, sizeof words);
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Processes of this host that the kernel's out-of-memory killer has ended since the boot, those of memory cgroups
 * included; -1: unknown (before Linux 4.13). `root`: "" is this machine; tests give the root of a recorded one. */
int64_t el_oom_kills(const char *root);
/* What follows "killed by signal 9", with the two counts before and after: "" where the kernel ended nothing. Returns
 * whether it ended something. */
bool el_oom_explain(int64_t before, int64_t after, char *text, size_t bytes);
