/* Steps, phases and collectives as NVTX ranges. Stateless: the open phase follows from the neighbouring ops, so each
 * thread's ranges are its own. */
#include "profiles/nvtx.h"

#if __has_include(<nvtx3/nvToolsExt.h>)

#include <inttypes.h>
#include <nvtx3/nvToolsExt.h>
#include <stdio.h>

static void push(nvtxDomainHandle_t domain, const char *text, uint64_t bytes)
{
    nvtxEventAttributes_t attributes = {.version = NVTX_VERSION,
                                        .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
                                        .payloadType = bytes ? NVTX_PAYLOAD_TYPE_UNSIGNED_INT64 : NVTX_PAYLOAD_UNKNOWN,
                                        .payload.ullValue = bytes,
                                        .messageType = NVTX_MESSAGE_TYPE_ASCII,
                                        .message.ascii = text};
    nvtxDomainRangePushEx(domain, &attributes);
}

static void step_begin(void *domain, uint64_t step)
{
    char text[32];
    snprintf(text, sizeof text, "step %" PRIu64, step);
    push(domain, text, 0);
}

static void step_end(void *domain, uint64_t step)
{
    (void)step;
    nvtxDomainRangePop(domain);
}

static void op_begin(void *domain, const struct el_op_info *op, const struct el_op_info *previous)
{
    if (!previous || previous->phase != op->phase) push(domain, el_phase_name(op->phase), 0);
    if (op->op_class == EL_CLASS_COMM) push(domain, op->label, op->sent_bytes);
}

static void op_end(void *domain, const struct el_op_info *op, const struct el_op_info *next)
{
    if (op->op_class == EL_CLASS_COMM) nvtxDomainRangePop(domain);
    if (!next || next->phase != op->phase) nvtxDomainRangePop(domain);
}

bool el_nvtx_module(struct el_watch *watch_p)
{
    *watch_p = (struct el_watch){.context = nvtxDomainCreateA("evenload"),
                                 .step_begin = step_begin,
                                 .step_end = step_end,
                                 .op_begin = op_begin,
                                 .op_end = op_end};
    return true;
}

#else

bool el_nvtx_module(struct el_watch *watch_p)
{
    (void)watch_p;
    return false;
}

#endif
