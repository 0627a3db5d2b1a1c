/* What everybody may know of a mode: its row's public part. Reports, pictures, options and tests ask here instead of
 * knowing modes by name. How its devices stand is the layout's to say (layout.h), how it works mode.h's.
 *
 * Ownership: constant. Threads: any.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "runtime/layout/layout.h"
#include "runtime/modes/option.h"

/* What a step's loss and gradients are. With batch norm each piece of the batch has its own statistics on its way
 * forward, so that neither is single's: `statistics` of the row says which. */
enum el_mode_loss {
    EL_LOSS_OF_BATCH, /* of the mean over the global batch, however it lies: single's for every batch */
    EL_LOSS_OF_RANKS  /* the mean over data ranks of each one's mean: single's where their shares are equal, or count as
                       their samples do (--shares) */
};

/* Memory that does not depend on the batch, in copies of the parameters (docs/semantics.md). On an owner the
 * optimizer's slots come on top, and its temporaries at its end. With kept gradients the end of backward has `kept`
 * more, or, where that is 0, the new gradients of one layer beside them. */
struct el_mode_memory {
    double backward, optimizer; /* an owner's: at the end of backward, and in the optimizer */
    double kept;
    double others;     /* of a device that owns nothing; 0: there are none. On one device: a plain model's two */
    double view;       /* fewer where gradients are views of buckets */
    const char *words; /* an owner's, where it is not so many copies and S more: sharded state; else NULL */
};

/* In pictures. */
struct el_mode_look {
    uint32_t fill, ink; /* 0xRRGGBB: of areas; of lines and points */
    int pattern;        /* gnuplot's fill pattern: 3 is solid, 4 and 5 are hatched */
    int point;          /* gnuplot's type of a full point; the number below is its outline */
    double point_size;
};

struct el_mode_info {
    const char *name;
    const char *summary;
    unsigned axes;    /* of its mesh: bits 1 << EL_AXIS_DATA ...; 0: it has none */
    bool one_process; /* whatever its devices are; else it may be started as several */
    bool many_a_rank; /* a data-parallel rank may have several devices */
    bool one_type;    /* weights go between devices, or are averaged, as they are stored: no copies in another type */
    const struct el_mode_option *const *options; /* that only some modes have (option.h), ended by NULL; NULL: none */
    const char *statistics; /* batch norm's: over which samples, and which become the running ones */
    const char *sends;      /* a step, between devices, in words; P is the size of all parameters */
    /* Settings of its options that make another schedule of it, "|" between them: "--overlap off|--bucket-mb view".
     * What is verified is the mode as it is, and with each of them. NULL: none. */
    const char *variants;
    enum el_mode_loss loss;
    struct el_mode_memory memory;
    int n_shown; /* devices that a picture of one trial shows: the first of each kind */
    struct el_mode_look look;
};

/* The list, ended by a row whose name is NULL. */
const struct el_mode_info *el_mode_list(void);
const struct el_mode_info *el_mode_find(const char *name); /* NULL: unknown */
/* Plain training on one device, which the others are held against. */
const struct el_mode_info *el_mode_plain(void);
/* Whether the mode always cuts the model along its depth. */
bool el_mode_cuts(const char *mode);
/* Whether the mode cuts the model at all: along its depth or across its layers. */
bool el_mode_has_pieces(const char *mode);
/* Where the devices of a job stand (layout.h). `n_processes` 0: the mode's own choice. */
void el_layout_of(const struct el_train_config *config, int n_processes, struct el_layout *layout_p);
/* How many of `n` devices a mode uses; 0: there is no such mode. */
int el_mode_devices(const char *mode, int n);
/* The same for a model: 1 where the mode cuts models across their layers, and this one cannot be. */
int el_mode_devices_for(const char *mode, const char *model, int n);
