/* How a loop is compiled for several instruction sets. Some of them contract a product and a sum, others cannot: sums
 * of products differ in their last bits from one machine to another, sums alone do not. */
#pragma once

/* A function marked EL_VECTOR is compiled for AVX-512, for AVX2 and for the plain machine, and the loader takes the one
 * that fits, so that a binary built anywhere runs anywhere, at full width. Off where the compiler does not have it, and
 * under sanitizers, whose run time is not up yet when the loader asks. */
#if defined __x86_64__ && defined __GLIBC__ && defined __GNUC__ && !defined __clang__ && __GNUC__ >= 12 &&             \
    !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__
#define EL_VECTOR __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define EL_VECTOR
#endif

/* Before a loop whose iterations touch nothing of each other's, though its pointers may be equal. */
#ifdef __clang__
#define EL_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#elif defined __GNUC__
#define EL_INDEPENDENT _Pragma("GCC ivdep")
#else
#define EL_INDEPENDENT
#endif
