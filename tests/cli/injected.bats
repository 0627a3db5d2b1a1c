# Disturbances of known size are injected with --inject, and the record must show what was injected: here what is exact on any machine,
# in virtual time or in bytes; what is measured is in window.bats.
load common

QUIET=(--data dummy --quiet --json --control none --min-time 0)

# measure NAME OPTIONS...: one run, its record in NAME.json.
measure() {
    local name=$1
    shift
    rm -rf "$name"
    "$EVENLOAD" run --out "$name" "$@" >"$name.json"
}

# In virtual time the answers are exact. Members with one share each come together; with 101 and 100 samples they do not,
# and still have one step time.
@test "simulated members wait for one another, exactly" {
    local words=(--mode ddp --devices sim:2 --model mlp --features 16 --hidden 16 --steps 5 "${QUIET[@]}")
    measure even "${words[@]}" --batch 8
    measure late "${words[@]}" --batch 8 --inject delay=1:20
    [[ $(json even.json '[p["comm"]["wait_ms"] for p in d["per_device"]], d["collectives"][0]["skew_ms"]') == "([0.0, 0.0], 0.0)" ]]
    [[ $(json late.json '[round(p["comm"]["wait_ms"], 9) for p in d["per_device"]]') == "[20.0, 0.0]" ]]
    [[ $(json late.json '[round(x, 9) for x in d["collectives"][0]["late_ms"]]') == "[-20.0, 20.0]" ]]
    [[ $(json late.json 'round(d["step_ms"]["median"], 6)') == "$(json even.json 'round(d["step_ms"]["median"] + 20, 6)')" ]]
    measure uneven "${words[@]}" --batch 201
    [[ $(json uneven.json 'd["batch_per_device"]') == "[101, 100]" ]]
    [[ $(json uneven.json 'len({round(x, 6) for x in d["step_ms"].values()})') == 1 ]]
    [[ $(json uneven.json '[p["comm"]["wait_ms"] > 0 for p in d["per_device"]]') == "[False, True]" ]]
    measure straggling "${words[@]}" --batch 8 --inject straggler=1:3
    [[ $(json straggling.json 'd["slowest_member"]') == 1 ]]
}

DP=(--mode dp --devices 2 --model mlp --features 64 --hidden 64 --batch 32 --steps 40 "${QUIET[@]}")

# memory FILE FIELD: of both devices.
memory() { json "$1.json" "[p['memory']['$2'] for p in d['per_device']]"; }

@test "a leak comes up as growth, to the page, on its device and on no other" {
    for position in 0 1; do
        measure leak "${DP[@]}" --inject "leak=$position:1MiB"
        [[ $(json leak.json "abs(d['per_device'][$position]['memory']['grown_bytes'] - 40 * 2**20) <= 40 * 4096") == True ]]
        [[ $(json leak.json "d['per_device'][$position]['memory']['unattributed_bytes'] >= 40 * 2**20") == True ]]
        [[ $(json leak.json "abs(d['per_device'][1 - $position]['memory']['grown_bytes']) < 0.01 * 40 * 2**20") == True ]]
        [[ $(json leak.json "abs(d['per_device'][1 - $position]['memory']['unattributed_bytes']) < 0.01 * 40 * 2**20") == True ]]
    done
}

@test "a leak of half a page costs the system a page" {
    measure leak "${DP[@]}" --inject "leak=1:$(($(getconf PAGESIZE) / 2))"
    [[ $(memory leak grown_bytes) == "[0, $((40 * $(getconf PAGESIZE)))]" ]] || { memory leak grown_bytes && false; }
}

@test "an oversized buffer comes up as unattributed, exactly, on its device and on no other" {
    measure clean "${DP[@]}"
    for position in 0 1; do
        measure large "${DP[@]}" --inject "oversize=$position:8MiB"
        [[ $(json large.json "d['per_device'][$position]['memory']['unattributed_bytes']") \
            == $(json clean.json "d['per_device'][$position]['memory']['unattributed_bytes'] + 8 * 2**20") ]]
        [[ $(json large.json "d['per_device'][1 - $position]['memory']['unattributed_bytes']") \
            == $(json clean.json "d['per_device'][1 - $position]['memory']['unattributed_bytes']") ]]
        [[ $(memory large grown_bytes) == "[0, 0]" ]]
    done
}

@test "the ledger knows nothing of what was planted" {
    measure clean "${DP[@]}"
    measure large "${DP[@]}" --inject oversize=1:8MiB,leak=0:64KiB
    [[ $(memory large peak_bytes) == "$(memory clean peak_bytes)" ]]
}

@test "bad --inject is refused in one line" {
    local run=("$EVENLOAD" run --mode ddp --devices null:2 "${QUICK[@]}")
    refuses "unknown disturbance 'dealy': did you mean 'delay'?" "${run[@]}" --inject dealy=1:20
    refuses "there is no device 2 in a trial of 2: give 0 to 1" "${run[@]}" --inject delay=2:20
    refuses "there is no device x in a trial of 2" "${run[@]}" --inject delay=x:20
    refuses "give delay=POS:MS, the value from 0 to 1e+06" "${run[@]}" --inject delay=20
    refuses "give delay=POS:MS" "${run[@]}" --inject delay=1:twenty
    refuses "give delay=POS:MS" "${run[@]}" --inject delay=1:-3
    refuses "give straggler=POS:RATIO, the value from 1 to 1000" "${run[@]}" --inject straggler=1:0.5
    refuses "give op=LABEL:RATIO" "${run[@]}" --inject op=3
    refuses "give op=LABEL:RATIO" "${run[@]}" --inject op=:3
    refuses "give pause=LABEL:MS" "${run[@]}" --inject pause=relu
    refuses "give leak=POS:BYTES, the value from 1 to 1e+12" "${run[@]}" --inject leak=1:1TiB
    refuses "give wire=MS" "${run[@]}" --inject wire=
    refuses "pause=linear:2: device 0 has 'pause' already: give each disturbance once for a device" "${run[@]}" --inject pause=relu:1,pause=linear:2
    refuses "op=relu:2: device 0 has 'op' already" "${run[@]}" --inject op=linear:2,op=relu:2
    refuses "delay=1:3: device 1 has 'delay' already" "${run[@]}" --inject delay=0:2,delay=1:2,delay=1:3
    refuses "give wire=MS" "${run[@]}" --inject wire
    refuses "has an empty or too long item" "${run[@]}" --inject delay=1:20,,wire=1
    refuses "ends with a comma" "${run[@]}" --inject delay=1:20,
    [[ -z $(ls results 2>/dev/null) ]]
}
