/* Compiles the file that EL_BODY names for f32 and for f64; see reference.h. No include guard: that is the point. */
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
