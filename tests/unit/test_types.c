/* Elements of two types in one place are found where sanitizers are built in, and name op, memory and both types. */
#include "tests/sanitized.h"
#include "tests/test.h"

#include <string.h>

#include "runtime/device/program.h"

static void a_place_has_elements_of_one_type(void **state)
{
    const struct el_device_spec spec = {.backend = "cpu"};
    struct el_device *device;
    struct el_program *program;
    struct el_buffer *buffer;
    if (!is_sanitized()) skip();
    assert_int_equal(el_device_open(&spec, &device), EL_OK);
    assert_int_equal(el_device_alloc(device, EL_TAG_GRAD, 64, "wpe", &buffer), EL_OK);
    assert_int_equal(el_program_create(&program), EL_OK);
    struct el_kernel_op op = {.op = EL_OP_FILL, .dtype = EL_F32, .views = {el_view_of(buffer, 0)}, .args.d = {8}};
    assert_int_equal(el_program_kernel(program, device, EL_STREAM_COMPUTE, &op, NULL), EL_OK);
    op.dtype = EL_BF16;
    op.views[0].offset = 32;
    assert_int_equal(el_program_kernel(program, device, EL_STREAM_COMPUTE, &op, NULL), EL_OK);
    const struct el_kernel_op sum = {.op = EL_OP_SUM_ROWS,
                                     .dtype = EL_BF16,
                                     .views = {el_view_of(buffer, 32), el_view_of(buffer, 0)},
                                     .args.d = {2, 2}};
    assert_int_equal(el_program_kernel(program, device, EL_STREAM_COMPUTE, &sum, NULL), EL_OK);
    op.views[0].offset = 28;
    assert_int_equal(el_program_kernel(program, device, EL_STREAM_COMPUTE, &op, NULL), EL_ERR_INTERNAL);
    assert_non_null(strstr(el_error_message(), "takes 'wpe' for bf16, which another op has as f32"));
    el_program_destroy(program);
    el_device_free(buffer);
    el_device_close(device);
}

RUN_TESTS(NULL, NULL, a_place_has_elements_of_one_type)
