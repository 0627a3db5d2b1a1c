/* What figures depend on and no command line says: this host, its state, and this build. */
#ifndef EL_BENCH_ENVIRONMENT_H
#define EL_BENCH_ENVIRONMENT_H

#include <jansson.h>

/* The environment of this host and build: cpu, cores, memory, kernel, libraries, git commit, time, hostname. What
 * cannot be read is null. New reference. */
json_t *el_environment(void);
/* What of it belongs to the machine, and the boot it runs since. New reference. */
json_t *el_machine(void);

#endif
