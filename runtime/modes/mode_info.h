/* A mode's public properties, for reports, plots, options and tests.
 * Ownership: constant. Threads: any. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "runtime/layout/layout.h"
#include "runtime/modes/option.h"

/* A step's loss and gradients. With batch norm each piece of the batch has its own statistics, so that neither equals
 * single's: see `statistics`. */
enum el_mode_loss {
    EL_LOSS_OF_BATCH, /* mean over the global batch, single's for every batch */
    EL_LOSS_OF_RANKS  /* mean over data ranks of their means: single's if shares are equal or weighted by samples
                         (--shares) */
};

/* Memory independent of the batch, in copies of the parameters (docs/semantics.md). On an owner the optimizer's slots
 * are added, and its temporaries at its end. With kept gradients the end of backward has `kept` more, or, if 0, one
 * layer's new gradients. */
struct el_mode_memory {
    double backward, optimizer; /* an owner's, at the end of backward and in the optimizer */
    double kept;
    double others;     /* of a device that owns nothing; 0: no such device */
    double view;       /* less with gradients as views of buckets */
    const char *words; /* an owner's sharded state, if not a number of copies plus S; else NULL */
};

struct el_mode_look {
    uint32_t fill, ink; /* 0xRRGGBB: areas; lines and points */
    int pattern;        /* gnuplot's fill pattern: 3 solid, 4 and 5 hatched */
    int point;          /* gnuplot's filled point type; the number below is its outline */
    double point_size;
};

struct el_mode_info {
    const char *name;
    const char *summary;
    unsigned axes;    /* of its mesh: bits 1 << EL_AXIS_DATA ...; 0: none */
    bool one_process; /* always; else it may start as several */
    bool many_a_rank; /* a data-parallel rank may have several devices */
    bool one_type;    /* weights are sent or averaged as stored: no copies in another type */
    const struct el_mode_option *const *options;
    const char *statistics; /* batch norm's: over which samples, and which become the running ones */
    const char *sends;      /* between devices per step, in words; P: size of all parameters */
    /* Options that make other schedules, separated by "|": "--overlap off|--bucket-mb view". Tests verify the mode
     * without and with each. NULL: none. */
    const char *variants;
    enum el_mode_loss loss;
    struct el_mode_memory memory;
    int n_shown; /* devices in a plot of one trial: the first of each kind */
    struct el_mode_look look;
};

/* Ended by a row whose name is NULL. */
const struct el_mode_info *el_mode_list(void);
const struct el_mode_info *el_mode_find(const char *name);
const struct el_mode_info *el_mode_plain(void);
/* Whether it always cuts the model into stages. */
bool el_mode_cuts(const char *mode);
/* Whether it cuts the model at all, into stages or across layers. */
bool el_mode_has_pieces(const char *mode);
/* Devices' places (layout.h). `n_processes` 0: the mode's choice. */
void el_layout_of(const struct el_train_config *config, int n_processes, struct el_layout *layout_p);
/* Devices that a mode uses of `n`; 0: unknown mode. */
int el_mode_devices(const char *mode, int n);
/* The same for a model: 1 if the mode cuts across layers and the model cannot be. */
int el_mode_devices_for(const char *mode, const char *model, int n);
