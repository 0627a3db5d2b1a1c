/* What a table's head and a picture mean. */
#include "bench/page/page.h"

#include <stddef.h>
#include <string.h>

static const struct {
    const char *head, *means;
} meanings[] = {
    /* pictures */
    {"throughput",
     "Samples per second (tokens per second for models over tokens); error bars: 95 % intervals over launches."},
    {"memory",
     "Memory of each device at its peak, MiB, by tag; line: how much more the first device holds than the others."},
    {"imbalance", "What each device holds, and how much more the first one holds."},
    {"imbalance-time", "A step of each device by phase, and how long it waits for others, ms."},
    {"imbalance-bytes", "MiB that each device sends and receives in a step."},
    {"step", "Milliseconds of a step by phase, on the slowest device; only the exposed part of communication counts."},
    {"timeline", "Memory of the first device and of another within one step, with lanes of compute and communication."},
    {"utilization", "Share of the step in which each device's compute stream worked."},
    {"stages", "One step of each stage: forward, backward and bubbles."},
    {"accuracy", "Accuracy on held-out samples against seconds of training."},
    {"loading", "When each batch was made and taken, without workers and with them."},
    {"explain", "From one step to another, part by part: green is shorter, red is longer, pale may be chance."},
    {"comm", "Bus bandwidth at each size, as nccl-tests defines it, beside that of a plain copy."},
    {"p2p", "Bandwidth and latency between each two ranks."},
    {"watch", "Memory and CPU time of each process over time."},
    {"scale", "Speed-up and efficiency against one device, with 95 % intervals."},
    /* trials */
    {"mode", "How training is spread over devices; 'evenload modes' says what each does."},
    {"global batch", "Samples a step over all devices; in brackets devices x local batch."},
    {"samples/s", "Global batch over the mean step; geometric mean over launches."},
    {"tokens/s", "Tokens of the global batch over the mean step; geometric mean over launches."},
    {"95 % interval", "95 % interval of the figure before it, over launches; none with fewer than 5 launches."},
    {"/single", "Throughput over that of single with the same global batch."},
    {"step ms", "Mean step, from its first submission to its last completion; geometric mean over launches."},
    {"p95 ms", "95th percentile of the steps of a launch; geometric mean over launches."},
    {"exposed ms", "Communication of a step during which the slowest device does not compute."},
    {"verdict", "valid, or the reason why the times should not be trusted; the warnings above explain it."},
    /* devices */
    {"peak MiB", "Highest number of bytes allocated at one moment, by the ledger; 1 MiB is 2^20 bytes."},
    {"by tag", "The largest parts of it at that moment, in MiB."},
    {"busy %",
     "Share of the step in which the device's compute stream worked; of a GPU at most, and none where the host "
     "may hold it up."},
    {"sent MiB", "Sent to other devices in a step."},
    /* scaling */
    {"dev.", "Number of devices; * where several share a core or a card."},
    {"speed-up", "Throughput over that of single on one device, then over that of the same mode on one device."},
    {"eff. %", "Speed-up over the number of devices."},
    {"95 %", "95 % interval of the figure before it, over launches."},
    /* evaluation by rank */
    {"answers",
     "Samples (tokens for models over tokens) that the rank has counted; with --eval padded some of them twice."},
    {"right", "Right answers among them."},
    {"accuracy %", "Right answers over answers."},
    {"mean loss", "Mean cross-entropy over the rank's answers."},
    /* epochs */
    {"epochs", "Whole passes over the training samples."},
    {"s per epoch", "Training time of an epoch, evaluation not counted."},
    {"held-out %", "Accuracy on held-out samples after the best epoch."},
    {"after s", "Training time until its end."},
    {"test %", "Accuracy on the test set by that epoch's weights."},
    {"loss", "Mean cross-entropy of a token, nat; on the test set, without one on held-out tokens."},
    {"perplexity", "exp(loss)."},
    {"bits/byte", "loss / ln 2, where tokens are bytes."},
    /* FLOP/s */
    {"GFLOP per step", "Forward and backward of all devices, as the kernels count them."},
    {"6N+12LHQT", "The same by the formula of the PaLM paper's appendix B, for all tokens of a step."},
    {"GFLOP/s per device", "The first over the mean step and the number of devices."},
    {"of GEMM %", "Its share of the rate of matrix products that --machine names."},
    /* where a step goes */
    {"compute", "Kernels run, ms per step."},
    {"+ exposed", "Communication during which the device does not compute."},
    {"+ other", "Loading, copies from the host, making threads."},
    {"+ idle", "None of these: the rest of the device's step."},
    {"| wait", "In a collective, until the last member has come."},
    {"transfer", "In a collective, from then on."},
    {"hidden %", "Share of communication behind compute."},
    {"bubble", "Waiting for the pipeline to fill or to drain."},
    {"CPU of comm.", "Processor time of communication."},
    {"bus GB/s", "Bus bandwidth of the step's all-reduces, as nccl-tests defines it; median over launches."},
    /* communication by axis */
    {"axis",
     "Of the devices that communicate: data (copies), stage or tensor (pieces of the model); copies: between devices "
     "of one process."},
    {"total", "Communication along it, with waiting."},
    {"wait", "The part of it until the last member has come."},
    {"exposed", "The part of the total while the device does not compute."},
    /* what communication costs */
    {"blocks on", "Step of the blocks with communication; these are not the measured steps."},
    {"blocks off", "Step of the blocks without communication."},
    {"on - off", "The cost of communication: the difference of the two."},
    {"contention", "How much longer the device computes while communication runs."},
};

const char *el_page_meaning(const char *head)
{
    for (size_t i = 0; i < sizeof meanings / sizeof meanings[0]; i++)
        if (strcmp(meanings[i].head, head) == 0) return meanings[i].means;
    return NULL;
}
