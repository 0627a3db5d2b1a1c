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

/* Elements of vectors a and b (numbered on from a's) in a new order; `places`: a vector type of integers as wide as
 * theirs. GCC has clang's builtin from 12 on. */
#ifdef __clang__
#define EL_SHUFFLE(places, a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define EL_SHUFFLE(places, a, b, ...) __builtin_shuffle(a, b, (places){__VA_ARGS__})
#endif

/* The iterations of the next loop are independent, even if pointers are equal. */
#ifdef __clang__
#define EL_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#elif defined __GNUC__
#define EL_INDEPENDENT _Pragma("GCC ivdep")
#else
#define EL_INDEPENDENT
#endif
