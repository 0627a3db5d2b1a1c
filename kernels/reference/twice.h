/* Compiles the file in EL_BODY for f32 and f64 (reference.h). No include guard on purpose. */
#define REAL            float
#define NAME(op)        el_reference_##op##_f32
#define LOCAL(function) function##_f32
#include EL_BODY
#undef REAL
#undef NAME
#undef LOCAL

#define REAL            double
#define NAME(op)        el_reference_##op##_f64
#define LOCAL(function) function##_f64
#include EL_BODY
#undef REAL
#undef NAME
#undef LOCAL
