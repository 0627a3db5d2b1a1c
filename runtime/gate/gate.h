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

/* How far both may be apart: the loss relative where it is above 1, a parameter's gradient in relative L2 norm.
 *
 * Sums in f32 in another order move a small model's gradients by 1e-7 to 1e-5: each product and convolution off by 1e-6
 * of the sum of its terms' magnitudes made it 8e-6 at most. TF32's roundings are of 5e-4, and make it above 2e-4. So
 * 1e-4 holds f32 on a card too. What makes it more without being wrong is a maximum or a ReLU within rounding of
 * another choice, which takes a sample's gradient elsewhere, by as much as EL_GATE_SWITCHED: a matter of chance, in one
 * of about a hundred trainings, that other values do not repeat, as what is wrong does. Deep models with batch norm
 * have such at all times, and it is their limit. Rounded to bf16 gradients of few elements are what is left of larger
 * ones, which are rounded by a 256th (0.06 of a bias of two classes was seen). */
#define EL_GATE_GRADIENT 1e-4
#define EL_GATE_SWITCHED 5e-2
/* Whose numbers are compared: kernels' with their own on another number of devices; with the reference kernels'. */
enum el_gate_kernels { EL_GATE_SAME, EL_GATE_CPU, EL_GATE_GPU, EL_GATE_TF32 };
struct el_gate_limits {
    double loss, gradient;
};
struct el_gate_limits el_gate_limits(const struct el_train_config *config, enum el_gate_kernels kernels);
