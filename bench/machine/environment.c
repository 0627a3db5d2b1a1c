/* The environment of a run: what the figures depend on and the command line does not say.
 *
 * Read from /proc, /sys and uname by plain files; what cannot be read is null. It judges nothing: verdicts are the
 * record's. */
#include "bench/machine/environment.h"

#include <glob.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "bench/base/jvalue.h"
#include "bench/machine/cores.h"
#include "kernels/kernels.h"
#include "runtime/base/files.h"
#include "runtime/launch/launch.h"

#ifndef EL_BUILD_COMMIT
#define EL_BUILD_COMMIT "unknown"
#endif
#ifndef EL_BUILD_FLAGS
#define EL_BUILD_FLAGS "unknown"
#endif
#ifndef EL_BUILD_MPI
#define EL_BUILD_MPI ""
#endif

/* The first line of a file; null if it cannot be read. */
static json_t *first_line(const char *path)
{
    char line[512];
    return el_json_string(el_file_line(path, "", line, sizeof line) ? line : NULL);
}

/* What follows "key<spaces>:" in /proc/cpuinfo; null if there is no such key. */
static json_t *cpuinfo(const char *key)
{
    char line[512];
    bool found = el_file_line("/proc/cpuinfo", key, line, sizeof line);
    return el_json_string(found ? line + strspn(line, "\t :") : NULL);
}

static json_t *affinity(void)
{
    cpu_set_t set;
    json_t *cores = json_array();
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) != 0) return cores;
    for (int i = 0; i < CPU_SETSIZE; i++) {
        if (CPU_ISSET(i, &set)) json_array_append_new(cores, json_integer(i));
    }
    return cores;
}

/* Null: no limit, or not readable. */
static json_t *cgroup_cores(void)
{
    double quota = el_cores_quota("");
    return quota > 0 ? json_real(quota) : json_null();
}

/* A file that says 1 or 0: whether it says `yes`; null: no such file. */
static json_t *read_switch(const char *path, char yes)
{
    char line[16];
    el_file_line(path, "", line, sizeof line);
    return *line != '0' && *line != '1' ? json_null() : json_boolean(*line == yes);
}

/* Intel's driver says what is switched off, the others what is on. */
static json_t *turbo(void)
{
    json_t *on = read_switch("/sys/devices/system/cpu/intel_pstate/no_turbo", '0');
    return json_is_null(on) ? read_switch("/sys/devices/system/cpu/cpufreq/boost", '1') : on;
}

static json_t *numa_nodes(void)
{
    glob_t nodes;
    if (glob("/sys/devices/system/node/node[0-9]*", 0, NULL, &nodes) != 0) return json_null();
    json_t *count = json_integer((json_int_t)nodes.gl_pathc);
    globfree(&nodes);
    return count;
}

static json_t *load_average(void)
{
    double load[3];
    json_t *array = json_array();
    int n = getloadavg(load, 3);
    for (int i = 0; i < n; i++) json_array_append_new(array, json_real(load[i]));
    return array;
}

static json_t *utc_now(void)
{
    char text[32];
    struct tm parts;
    time_t now = time(NULL);
    gmtime_r(&now, &parts);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
    return json_string(text);
}

/* Where a program lies in PATH; null if it does not. */
static json_t *program_path(const char *name)
{
    char *path;
    if (el_launch_find_program(name, &path) != EL_OK) return json_null();
    json_t *value = el_json_string(path);
    free(path);
    return value;
}

json_t *el_machine(void)
{
    struct utsname names;
    bool named = uname(&names) == 0;
    json_t *e = json_object();
    json_object_set_new(e, "hostname", el_json_string(named ? names.nodename : NULL));
    json_object_set_new(e, "kernel", named ? json_sprintf("%s %s", names.sysname, names.release) : json_null());
    json_object_set_new(e, "machine", el_json_string(named ? names.machine : NULL));
    json_object_set_new(e, "cpu_model", cpuinfo("model name"));
    json_object_set_new(e, "cores_online", el_json_count(sysconf(_SC_NPROCESSORS_ONLN)));
    json_object_set_new(e, "memory_bytes",
                        el_json_count((int64_t)sysconf(_SC_PHYS_PAGES) * (int64_t)sysconf(_SC_PAGESIZE)));
    json_object_set_new(e, "boot_id", first_line("/proc/sys/kernel/random/boot_id"));
    return e;
}

static void put_state(json_t *e)
{
    json_object_set_new(e, "cpu_stepping", cpuinfo("stepping"));
    json_object_set_new(e, "cpu_microcode", cpuinfo("microcode"));
    json_object_set_new(e, "smt", read_switch("/sys/devices/system/cpu/smt/active", '1'));
    json_object_set_new(e, "turbo", turbo());
    json_object_set_new(e, "numa_nodes", numa_nodes());
    json_object_set_new(e, "affinity", affinity());
    json_object_set_new(e, "cgroup_cores", cgroup_cores());
    json_object_set_new(e, "governor", first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"));
    json_object_set_new(e, "load_average", load_average());
}

static void put_build(json_t *e)
{
    const char *library = el_kernels_cpu_library();
    json_object_set_new(e, "commit", el_json_string(EL_BUILD_COMMIT));
    json_object_set_new(e, "compiler",
                        el_json_string(
#if defined(__clang__)
                            "clang " __clang_version__
#elif defined(__GNUC__)
                            "gcc " __VERSION__
#else
                            "unknown"
#endif
                            ));
    json_object_set_new(e, "compiler_flags", el_json_string(EL_BUILD_FLAGS));
    json_object_set_new(e, "mpi", el_json_string(*EL_BUILD_MPI ? EL_BUILD_MPI : NULL));
    json_object_set_new(e, "cpu_library", el_json_string(library == NULL || *library == '\0' ? NULL : library));
    json_object_set_new(e, "cpu_library_reason", el_json_string(el_kernels_cpu_lack()));
}

json_t *el_environment(void)
{
    json_t *e = json_object(), *machine = el_machine();
    json_object_set_new(e, "time_utc", utc_now());
    json_object_update(e, machine);
    json_decref(machine);
    put_state(e);
    put_build(e);
    json_object_set_new(e, "mpirun", program_path("mpirun"));
    json_object_set_new(e, "gnuplot", program_path("gnuplot"));
    json_object_set_new(e, "warnings", json_array());
    return e;
}
