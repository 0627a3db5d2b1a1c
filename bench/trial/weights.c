/* Files of weights, before training; see weights.h. */
#include "bench/trial/weights.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/state/weights.h"

enum el_status el_trial_open_weights(const char *load, const struct el_model_config *model,
                                     struct el_safetensors **weights_p)
{
    struct el_safetensors *weights;
    struct el_graph *graph;
    *weights_p = NULL;
    if (!*load) return EL_OK;
    EL_TRY(el_model_build(model, &graph));
    enum el_status status = el_safetensors_open(load, &weights);
    if (status == EL_OK) {
        status = el_weights_check(weights, graph);
        if (status == EL_OK)
            *weights_p = weights;
        else
            el_safetensors_close(weights);
    }
    el_graph_destroy(graph);
    return status;
}

enum el_status el_trial_check_save(const struct el_trial *trial)
{
    const char *backend = trial->devices[0].backend, *slash = strrchr(trial->save, '/');
    char folder[EL_PATH_BYTES] = ".";
    struct stat info;
    if (!*trial->save) return EL_OK;
    if (!el_trial_backend(trial).computes)
        return el_fail(EL_ERR_INVALID, "--save: %s devices compute nothing, so there are no weights: leave it out",
                       backend);
    if (stat(trial->save, &info) == 0 && S_ISDIR(info.st_mode))
        return el_fail(EL_ERR_INVALID, "--save %s: is a directory; give a file in it", trial->save);
    if (slash) snprintf(folder, sizeof folder, "%.*s", (int)(slash - trial->save) + 1, trial->save);
    const char *name = slash ? slash + 1 : trial->save;
    long most = pathconf(folder, _PC_NAME_MAX) - EL_TEMPORARY_BYTES;
    if (most > 0 && strlen(name) > (size_t)most)
        return el_fail(EL_ERR_INVALID, "--save %.40s...: the name is longer than %ld characters: give a shorter one",
                       name, most);
    return access(folder, W_OK | X_OK) == 0 ? EL_OK : el_fail_errno("--save %s: the folder %s", trial->save, folder);
}
