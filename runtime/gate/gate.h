/* The gate between modes: before any timing is believed, a mode's loss and gradients are held against the reference on
 * one device.
 *
 *     el_gate_gradients(&config, &place, &loss, &grads);            the mode's
 *     el_gate_reference(&config, device, dataset, &loss, &grads);   what it must give, by the loss of its row
 *     el_gate_compare(&config, grads, reference, &worst, name, sizeof name);
 *
 * Loss and gradients of step EL_GATE_STEPS - 1 with a learning rate of 0 (so that ddp's rebuilt buckets are compared
 * too), and running statistics after it: grads are doubles in order of parameters, and behind them those of
 * el_train_result's buffers, on rank 0 (elsewhere NULL); to be freed. Compared is the worst parameter's relative L2
 * difference, and its name is given.
 *
 * Collective: el_gate_gradients, as el_train. Errors: theirs.
 */
#pragma once

#include "runtime/train/train.h"

enum { EL_GATE_STEPS = 2 };
enum el_status el_gate_gradients(const struct el_train_config *config, const struct el_train_place *place,
                                 double *loss_p, double **grads_p);
/* el_gate_reference_config: what the mode must equal as a configuration of its own, to be trained on one device. */
void el_gate_reference_config(const struct el_train_config *config, struct el_train_config *reference_p);
enum el_status el_gate_reference(const struct el_train_config *config, struct el_device *device,
                                 const struct el_dataset *dataset, double *loss_p, double **grads_p);
enum el_status el_gate_compare(const struct el_train_config *config, const double *grads, const double *reference,
                               double *worst_p, char *name, size_t name_bytes);
