/* The caching allocator of device memory, on a card: what it gives never overlaps, is used again,
 * becomes whole again, and goes back to the driver when that has no more. */
#include "runtime/device/cuda.h"
#include "tests/cards/cards_cases.h"

enum { MIB = 1 << 20 };

static struct el_cuda_cache cache;
static struct el_cuda_api api;
static int n_mallocs;

static int count_malloc(void **address_p, size_t bytes)
{
    n_mallocs++;
    return cudaMalloc(address_p, bytes);
}

static int open_cache(void **state)
{
    const struct el_cuda_module *module;
    if (el_cuda_module_load(&module) != EL_OK) fail_msg("%s", el_error_message());
    api = *module->api;
    api.Malloc = count_malloc;
    n_mallocs = 0;
    el_cuda_cache_open(&cache, &api, "cuda:0");
    return 0;
}

static int64_t taken(void)
{
    struct cards_counts counts;
    cards_count(0, &counts);
    return (int64_t)counts.left_bytes;
}

static int close_cache(void **state)
{
    el_cuda_cache_close(&cache);
    assert_int_equal(taken(), 0);
    return 0;
}

static uintptr_t take(size_t bytes)
{
    uintptr_t address = 0;
    if (el_cuda_cache_take(&cache, bytes, &address) != EL_OK) fail_msg("%s", el_error_message());
    assert_int_equal(address % 512, 0);
    return address;
}

static void freed_memory_is_taken_again(void **state)
{
    uintptr_t a = take(10 * MIB), b = take(100);
    assert_int_equal(cache.n_live, 2);
    assert_int_equal(cache.live_bytes, 10 * MIB + 512);
    assert_int_equal(cache.reserved_bytes, 12 * MIB);
    el_cuda_cache_give(&cache, a);
    assert_int_equal(cache.live_bytes, 512);
    assert_int_equal(cache.reserved_bytes, 12 * MIB);
    assert_int_equal(take(10 * MIB), a);
    assert_int_equal(n_mallocs, 2);
    uintptr_t c = take(1 * MIB); /* beside b, in its segment */
    assert_int_equal(n_mallocs, 2);
    assert_true(c >= b + 512 && c + MIB <= b + 2 * MIB);
}

static void neighbours_become_one_again(void **state)
{
    static const int orders[][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {2, 1, 0}, {1, 2, 0}, {2, 0, 1}};
    for (size_t o = 0; o < sizeof orders / sizeof orders[0]; o++) {
        uintptr_t parts[3];
        for (int i = 0; i < 3; i++) parts[i] = take(512 * 1024);
        for (int i = 0; i < 3; i++) el_cuda_cache_give(&cache, parts[orders[o][i]]);
        el_cuda_cache_give(&cache, take(2 * MIB));
        assert_int_equal(n_mallocs, 1);
    }
    el_cuda_cache_trim(&cache);
    assert_int_equal(cache.reserved_bytes, 0);
    assert_int_equal(cache.n_segments, 0);
}

/* Segments that happen to lie side by side are not one: each goes back by itself. */
static void segments_are_never_joined(void **state)
{
    uintptr_t parts[8];
    for (int i = 0; i < 8; i++) parts[i] = take(2 * MIB);
    for (int i = 0; i < 8; i++) el_cuda_cache_give(&cache, parts[i]);
    assert_int_equal(cache.n_segments, 8);
    el_cuda_cache_trim(&cache);
    assert_int_equal(taken(), 0);
}

static void what_is_free_goes_back_before_memory_runs_out(void **state)
{
    uintptr_t small = take(100 * MIB), other = take(100 * MIB);
    el_cuda_cache_give(&cache, small);
    el_cuda_cache_give(&cache, other);
    take(200 * MIB); /* fits only in place of both */
    assert_int_equal(cache.reserved_bytes, 200 * MIB);
    uintptr_t never = 1;
    assert_int_equal(el_cuda_cache_take(&cache, 100 * MIB, &never), EL_ERR_OOM);
    assert_int_equal(never, 1);
    const char *words = el_error_message();
    assert_non_null(strstr(words, "cuda:0 is out of memory: 100.00 MiB do not fit"));
    assert_non_null(strstr(words, "holds 200.00 MiB, 56.00 MiB of 259.00 MiB are free"));
    assert_int_equal(cudaPeekAtLastError(), cudaSuccess); /* else the next kernel would be blamed */
    assert_int_equal(el_cuda_cache_take(&cache, SIZE_MAX, &never), EL_ERR_OOM);
    take(50 * MIB);
}

static void odd_requests(void **state)
{
    uintptr_t none = take(0), one = take(1);
    assert_true(none != 0 && none != one);
    el_cuda_cache_give(&cache, none + 1); /* not a block: nothing happens */
    el_cuda_cache_give(&cache, none);
    el_cuda_cache_give(&cache, none);
    assert_int_equal(cache.n_live, 1);
    assert_int_equal(cache.live_bytes, 512);
}

/* Sizes from bytes to many MiB, thousands of times; no block reaches into another. */
static void a_long_random_life(void **state)
{
    enum { BLOCKS = 64, ROUNDS = 20000 };
    static struct {
        uintptr_t at;
        size_t bytes;
    } held[BLOCKS];
    uint64_t random = 7;
    int n_refused = 0;
    int64_t sum = 0;
    memset(held, 0, sizeof held);
    for (int round = 0; round < ROUNDS; round++) {
        int i = draw(&random, BLOCKS);
        if (held[i].at) {
            el_cuda_cache_give(&cache, held[i].at);
            sum -= (int64_t)held[i].bytes;
            held[i].at = 0;
        } else {
            size_t asked = (size_t)draw(&random, draw(&random, 8) ? 100000 : 12 * MIB) + 1;
            uintptr_t address;
            if (el_cuda_cache_take(&cache, asked, &address) != EL_OK) {
                n_refused++;
                continue;
            }
            held[i].bytes = (asked + 511) / 512 * 512;
            for (int j = 0; j < BLOCKS; j++)
                assert_true(!held[j].at || address + held[i].bytes <= held[j].at ||
                            held[j].at + held[j].bytes <= address);
            held[i].at = address;
            sum += (int64_t)held[i].bytes;
        }
        assert_int_equal(cache.live_bytes, sum);
        assert_true(cache.reserved_bytes >= sum && cache.reserved_bytes == taken());
    }
    for (int i = 0; i < BLOCKS; i++)
        if (held[i].at) el_cuda_cache_give(&cache, held[i].at);
    assert_int_equal(cache.live_bytes, 0);
    el_cuda_cache_trim(&cache);
    assert_int_equal(cache.reserved_bytes, 0); /* all segments had become whole */
    assert_true(n_refused < ROUNDS / 10);
}

int main(void)
{
    set_up_cards();
    setenv("FAKE_CARDS_BYTES", "271581184", 1); /* 256 MiB and a context */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(freed_memory_is_taken_again, open_cache, close_cache),
        cmocka_unit_test_setup_teardown(neighbours_become_one_again, open_cache, close_cache),
        cmocka_unit_test_setup_teardown(segments_are_never_joined, open_cache, close_cache),
        cmocka_unit_test_setup_teardown(what_is_free_goes_back_before_memory_runs_out, open_cache, close_cache),
        cmocka_unit_test_setup_teardown(odd_requests, open_cache, close_cache),
        cmocka_unit_test_setup_teardown(a_long_random_life, open_cache, close_cache),
    };
    return cmocka_run_group_tests_name("the cache of a card's memory", tests, NULL, NULL);
}
