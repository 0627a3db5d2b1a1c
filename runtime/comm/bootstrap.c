/* The list of bootstraps, the `self` one, argument checks and agreement. */
#include "runtime/comm/bootstrap_ops.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/module.h"
#include "runtime/comm/mpi/module.h"

static void close_self(struct el_bootstrap *bootstrap)
{
    free(bootstrap);
}

static const struct el_bootstrap_ops self_ops = {.kind = "self", .close = close_self};

static enum el_status open_self(struct el_bootstrap **bootstrap_p)
{
    struct el_bootstrap *bootstrap = calloc(1, sizeof *bootstrap);
    if (!bootstrap) return el_fail(EL_ERR_HOST_MEMORY, "bootstrap self: no memory");
    bootstrap->ops = &self_ops;
    bootstrap->size = 1;
    *bootstrap_p = bootstrap;
    return EL_OK;
}

enum el_status el_mpi_module_open(const struct el_mpi_module **module_p)
{
    const void *table;
    struct el_error error;
    enum el_status status = el_module_table("mpi", "el_mpi_module", &table);
    if (status == EL_OK) {
        *module_p = table;
        return EL_OK;
    }
    el_error_take(status, &error);
    return el_fail(status, "%.380s; install libopenmpi-dev and openmpi-bin and build again", error.text);
}

static enum el_status open_mpi(struct el_bootstrap **bootstrap_p)
{
    const struct el_mpi_module *module;
    EL_TRY(el_mpi_module_open(&module));
    return module->bootstrap_open(bootstrap_p);
}

static const struct {
    const char *kind;
    enum el_status (*open)(struct el_bootstrap **bootstrap_p);
} kinds[] = {{"self", open_self}, {"mpi", open_mpi}};

enum el_status el_bootstrap_open(const char *kind, struct el_bootstrap **bootstrap_p)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(kind, kinds[i].kind) == 0) return kinds[i].open(bootstrap_p);
    return el_fail(EL_ERR_ABSENT, "bootstrap %s: unknown (there are self and mpi, and tcp with a place to meet)", kind);
}

void el_bootstrap_close(struct el_bootstrap *bootstrap)
{
    if (bootstrap) bootstrap->ops->close(bootstrap);
}

int el_bootstrap_rank(const struct el_bootstrap *bootstrap)
{
    return bootstrap->rank;
}

int el_bootstrap_size(const struct el_bootstrap *bootstrap)
{
    return bootstrap->size;
}

const char *el_bootstrap_kind(const struct el_bootstrap *bootstrap)
{
    return bootstrap->ops->kind;
}

const char *el_bootstrap_library(const struct el_bootstrap *bootstrap)
{
    return bootstrap->library;
}

void el_bootstrap_address(const struct el_bootstrap *bootstrap, char *text, size_t bytes)
{
    if (bytes) text[0] = 0;
    if (bootstrap->ops->address) bootstrap->ops->address(bootstrap, text, bytes);
}

void el_bootstrap_set_timeout(struct el_bootstrap *bootstrap, double timeout_s)
{
    bootstrap->timeout_s = timeout_s;
}

double el_bootstrap_timeout(const struct el_bootstrap *bootstrap)
{
    return bootstrap->timeout_s;
}

void el_bootstrap_silent(struct el_bootstrap *bootstrap, char *text, size_t bytes)
{
    if (bytes) text[0] = 0;
    if (bootstrap->ops->silent) bootstrap->ops->silent(bootstrap, text, bytes);
}

static void free_texts(char **texts, int size)
{
    if (!texts) return;
    for (int i = 0; i < size; i++) free(texts[i]);
    free(texts);
}

enum el_status el_bootstrap_gather(struct el_bootstrap *bootstrap, const char *text, char ***texts_p)
{
    char **texts = NULL;
    if (bootstrap->rank == 0) {
        texts = calloc((size_t)bootstrap->size, sizeof *texts);
        if (!texts) return el_fail(EL_ERR_HOST_MEMORY, "gather of %d texts: no memory", bootstrap->size);
    }
    enum el_status status = EL_OK;
    if (bootstrap->size > 1)
        status = bootstrap->ops->gather(bootstrap, text, texts);
    else if (!(texts[0] = strdup(text)))
        status = el_fail(EL_ERR_HOST_MEMORY, "gather: no memory");
    if (status != EL_OK) {
        free_texts(texts, bootstrap->size);
        return status;
    }
    *texts_p = texts;
    return EL_OK;
}

enum el_status el_bootstrap_broadcast(struct el_bootstrap *bootstrap, void *data, size_t bytes)
{
    if (bootstrap->size == 1 || bytes == 0) return EL_OK;
    return bootstrap->ops->broadcast(bootstrap, data, bytes);
}

enum el_status el_bootstrap_barrier(struct el_bootstrap *bootstrap)
{
    if (bootstrap->size == 1) return EL_OK;
    if (bootstrap->ops->barrier) return bootstrap->ops->barrier(bootstrap);
    char **texts = NULL, nothing = 0;
    EL_TRY(el_bootstrap_gather(bootstrap, "", &texts));
    free_texts(texts, bootstrap->size);
    return el_bootstrap_broadcast(bootstrap, &nothing, 1);
}

static void find_first_failure(char *const *texts, int size, struct el_error *error)
{
    memset(error, 0, sizeof *error);
    for (int i = 0; i < size; i++) {
        if (!texts[i][0]) continue;
        error->status = EL_ERR_PEER;
        snprintf(error->text, sizeof error->text, "rank %d: %s", i, texts[i]);
        return;
    }
}

enum el_status el_bootstrap_agree(struct el_bootstrap *bootstrap, enum el_status mine)
{
    struct el_error own, first;
    el_error_take(mine, &own);
    if (bootstrap->size == 1) return mine;
    if (mine != EL_OK && !own.text[0]) snprintf(own.text, sizeof own.text, "%s", el_status_text(mine));
    char **texts = NULL;
    EL_TRY(el_bootstrap_gather(bootstrap, mine == EL_OK ? "" : own.text, &texts));
    if (bootstrap->rank == 0) find_first_failure(texts, bootstrap->size, &first);
    free_texts(texts, bootstrap->size);
    EL_TRY(el_bootstrap_broadcast(bootstrap, &first, sizeof first));
    return mine != EL_OK ? el_error_give(&own) : first.status == EL_OK ? EL_OK : el_error_give(&first);
}

void el_bootstrap_abort(struct el_bootstrap *bootstrap, int exit_status)
{
    if (bootstrap && bootstrap->ops->abort) bootstrap->ops->abort(bootstrap, exit_status);
}
