/* The gate: compares a mode's loss and gradients with the reference on one device, before timing.
 *
 *     el_gate_gradients(&config, &place, &loss, &grads);            the mode's
 *     el_gate_reference(&config, device, dataset, &loss, &grads);   the expected ones, by the loss of its row
 *     el_gate_compare(&config, grads, reference, &worst, name, sizeof name);
 *
 * Loss and gradients of step EL_GATE_STEPS - 1 at learning rate 0 (so that ddp's rebuilt buckets are tested too).
 * grads: doubles in the order of parameters, then el_train_result's buffers, on rank 0 (elsewhere NULL); the caller
 * frees them. worst: a parameter's relative L2 difference. Collective: el_gate_gradients, like el_train. */
#pragma once

#include "runtime/train/train.h"

enum { EL_GATE_STEPS = 2 };
enum el_status el_gate_gradients(const struct el_train_config *config, const struct el_train_place *place,
                                 double *loss_p, double **grads_p);
/* The expected result as a configuration of its own, for one device. */
void el_gate_reference_config(const struct el_train_config *config, struct el_train_config *reference_p);
enum el_status el_gate_reference(const struct el_train_config *config, struct el_device *device,
                                 const struct el_dataset *dataset, double *loss_p, double **grads_p);
enum el_status el_gate_compare(const struct el_train_config *config, const double *grads, const double *reference,
                               double *worst_p, char *name, size_t name_bytes);

/* Limits: the loss's relative difference (absolute below 1), a parameter's gradient in relative L2 norm.
 * f32 sums in another order move a small model's gradients by 1e-7 to 1e-5, TF32 by more than 2e-4. A maximum or ReLU
 * within rounding of another choice redirects a sample's gradient, by up to EL_GATE_SWITCHED: chance, in about one of a
 * hundred trainings, which other values do not repeat, unlike an error. Deep models with batch norm always have such;
 * it is their limit. bf16 gradients of few elements are small differences of large values rounded by 1/256 (0.06 was
 * seen for a bias of two classes). */
#define EL_GATE_GRADIENT 1e-4
#define EL_GATE_SWITCHED 5e-2
/* Kernels compared: the same on other numbers of devices, or with the reference kernels. */
enum el_gate_kernels { EL_GATE_SAME, EL_GATE_CPU, EL_GATE_GPU, EL_GATE_TF32 };
struct el_gate_limits {
    double loss, gradient;
};
struct el_gate_limits el_gate_limits(const struct el_train_config *config, enum el_gate_kernels kernels);
