/* Memory that the host has left. */
#ifndef EL_BENCH_HOST_MEMORY_H
#define EL_BENCH_HOST_MEMORY_H

/* What this process may still take: MemAvailable, and less where a cgroup or `ulimit -v` grants less. `root` is "" but
 * in tests. NAN where nothing can be read. */
double el_host_free_bytes(const char *root);

#endif
