/* Compiling loops for several instruction sets. Some contract a product and a sum: sums of products may differ in the
 * last bits between machines, plain sums do not. */
#pragma once

/* Compiles a function for AVX-512, AVX2 and baseline; the loader chooses. Off without compiler support, and under
 * sanitizers, which are not initialized when the loader chooses. */
#if defined __x86_64__ && defined __GLIBC__ && defined __GNUC__ && !defined __clang__ && __GNUC__ >= 12 &&             \
    !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__
#define EL_VECTOR __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define EL_VECTOR
#endif

/* The iterations of the next loop are independent, even if pointers are equal. */
#ifdef __clang__
#define EL_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#elif defined __GNUC__
#define EL_INDEPENDENT _Pragma("GCC ivdep")
#else
#define EL_INDEPENDENT
#endif
