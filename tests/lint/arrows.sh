#!/usr/bin/env bash
# Includes and calls point one way, from what measures down to what computes, the rooms of bench/ in their order too, and heavy
# libraries are known in one folder each. What a file calls is read from the objects of the build: a function that a low
# room declares and a high one defines is a call upward too. The other parts plant includes and calls that break each
# rule, and fail when one of them goes unseen.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

# folder: what it may include beside itself
ARROWS='
runtime/base:
kernels:           runtime/base
runtime/launch:    runtime/base
runtime/device:    kernels runtime/base
runtime/comm:      runtime/device kernels runtime/base
runtime/graph:     runtime/comm runtime/device kernels runtime/base
runtime/data:      runtime/graph runtime/comm runtime/device kernels runtime/base
runtime/models:    runtime/data runtime/graph runtime/comm runtime/device kernels runtime/base
runtime/layout:    runtime/models runtime/data runtime/graph runtime/comm runtime/device kernels runtime/base
runtime/state:     runtime/layout runtime/models runtime/data runtime/graph runtime/comm runtime/device kernels runtime/base
runtime/gradients: runtime/state runtime/layout runtime/models runtime/data runtime/graph runtime/comm runtime/device kernels runtime/base
runtime/worker:    runtime/gradients runtime/state runtime/layout runtime/models runtime/data runtime/graph runtime/comm runtime/device kernels runtime/base
runtime/modes:     runtime/worker runtime/gradients runtime/state runtime/layout runtime/models runtime/data runtime/graph runtime/comm runtime/device kernels runtime/base
runtime/train:     runtime/modes runtime/worker runtime/gradients runtime/state runtime/layout runtime/models runtime/data runtime/graph runtime/comm runtime/device kernels runtime/base
runtime/gate:      runtime/train runtime/modes runtime/worker runtime/gradients runtime/state runtime/layout runtime/models runtime/data runtime/graph runtime/comm runtime/device kernels runtime/base
profiles:          runtime kernels
bench:             profiles runtime kernels
tests:             bench profiles runtime kernels'

# The rooms of bench/, a floor a line, from the lowest: a room may include those of lower floors, not of its own or a
# higher one. What stands in bench/ itself, the subcommands, is the roof.
ROOMS='
base stats
foreign training
options
trial machine
verdict
record
job
campaign
report
plot
explain
comm imbalance plan recover regress scale verify
traces fleet
watch
study
page'

# header, as an extended regular expression: the only folder that may include it
LIBRARIES='
(oneapi/dnnl/|dnnl).*  kernels/cpu/dnnl
mpi\.h                 runtime/comm/mpi/module
(cuda|cudnn|cublas|nccl|nvml).*  (cuda|nccl|tests/gpu|tests/cards)
nvtx.*                 profiles/nvtx
(png|jpeglib|jerror)\.h  runtime/data/codec'

# file:line:#include, of each in the tree at $1.
includes() (
    cd "$1" || return
    find bench kernels profiles runtime tests \( -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' \) -exec grep -nHE '^ *# *include' {} + 2>/dev/null
)

# file:symbol:"file", of each function or object that a file of the tree at $1 uses and another defines, by the objects in $2.
calls() (
    tree=$(cd "$1" && pwd)
    cd "$2" || return
    find bench kernels profiles runtime -name '*.o' 2>/dev/null | while read -r object; do
        for source in "$tree/${object%.o}".{c,cu,cpp}; do # else it is of a file that is gone
            [[ ! -e $source ]] || echo "$object"
        done
    done | xargs nm -A | sed 's/^\([^:]*\)\.o:/\1.c /' | awk '
        $(NF - 1) ~ /^[TDBRV]$/ { definer[$NF] = $1 }
        $(NF - 1) == "U" { used[$1 ":" $NF] = $NF }
        END { for (use in used) if (used[use] in definer) print use ":\"" definer[used[use]] "\"" }'
)

# Prints `file:line: why` for every include or call among those read that breaks a rule.
violations() (
        ARROWS=$ARROWS ROOMS=$ROOMS LIBRARIES=$LIBRARIES awk '
        BEGIN {
            rows = split(ENVIRON["ARROWS"], row, "\n")
            for (i = 1; i <= rows; i++) {
                if (split(row[i], part, ":") < 2) continue
                folder[++folders] = part[1]
                allowed[part[1]] = part[1] " " part[2]
            }
            floors = split(ENVIRON["ROOMS"], row, "\n")
            for (i = 1; i <= floors; i++) {
                rows = split(row[i], part, " ")
                for (k = 1; k <= rows; k++) floor_of["bench/" part[k]] = i
            }
            rows = split(ENVIRON["LIBRARIES"], row, "\n")
            for (i = 1; i <= rows; i++) if (split(row[i], part, " ") == 2) home[part[1]] = part[2]
        }
        function under(path, dir) { return index(path, dir "/") == 1 }
        function folder_of(path, i) {
            for (i = 1; i <= folders; i++) if (under(path, folder[i])) return folder[i]
            return ""
        }
        function may(from, path, n, names, i) {
            n = split(allowed[from], names, " ")
            for (i = 1; i <= n; i++) if (under(path, names[i])) return 1
            return 0
        }
        # "bench/record" of a path in that room, "bench" of what stands in no room.
        function room_of(path, part) { return split(path, part, "/") > 2 ? part[1] "/" part[2] : part[1] }
        {
            split($0, field, ":")
            file = field[1]; where = field[1] ":" field[2] ": "
            from = folder_of(file)
            if (match($0, /"[^"]*"/)) {
                path = substr($0, RSTART + 1, RLENGTH - 2)
                if (from == "") print where "stands in no folder of the plan"
                else if (folder_of(path) == "") print where "\"" path "\" is not a path from the root"
                else if (!may(from, path)) print where from " may not use " path
                else if (from == "bench" && folder_of(path) == "bench") {
                    room = room_of(file); other = room_of(path)
                    if (room != "bench" && !(room in floor_of)) print where room " stands on no floor of the plan"
                    else if (room != "bench" && room != other && !((other in floor_of) && floor_of[other] < floor_of[room]))
                        print where room " may not use " path
                }
            } else if (match($0, /<[^>]*>/)) {
                path = substr($0, RSTART + 1, RLENGTH - 2)
                for (header in home)
                    if (path ~ "^" header "$" && file !~ "(^|/)" home[header] "/") print where path " belongs to " home[header] " alone"
            }
        }'
)

INJECTED='
runtime/base/x.c     #include "kernels/kernels.h"
kernels/x.c          #include "runtime/device/device.h"
runtime/launch/x.c   #include "runtime/comm/comm.h"
runtime/device/x.c   #include "runtime/comm/comm.h"
runtime/comm/x.c     #include "runtime/graph/graph.h"
runtime/graph/x.c    #include "runtime/models/models.h"
runtime/data/x.c     #include "runtime/models/models.h"
runtime/models/x.c   #include "runtime/modes/mode.h"
runtime/modes/x.c    #include "profiles/recorder.h"
runtime/train/y.c    # include "runtime/launch/launch.h"
profiles/x.c         #include "bench/record/record.h"
runtime/device/y.h   #include "device.h"
kernels/cpu/x.c      #include <oneapi/dnnl/dnnl.h>
kernels/cpu/y.c      #include <dnnl.h>
runtime/comm/mpi/y.c #include <mpi.h>
kernels/cuda/x.cu    #include "runtime/device/device.h"
profiles/y.c         #include <nvtx3/nvToolsExt.h>
runtime/data/y.c     #include <png.h>
bench/x.c            #include <cuda_runtime.h>
bench/options/x.c    #include "bench/record/record.h"
bench/record/x.c     #include "bench/job/worker.h"
bench/job/x.c        #include "bench/campaign/campaign.h"
bench/campaign/x.c   #include "bench/commands.h"
bench/scale/x.c      #include "bench/watch/watch.h"
bench/attic/x.c      #include "bench/base/text.h"'

# Prints the injected includes that went unseen.
unseen() {
    local tree file line
    tree=$(mktemp -d)
    while read -r file line; do
        [[ -n $file ]] || continue
        mkdir -p "$tree/${file%/*}"
        printf '%s\n' "$line" >"$tree/$file"
    done <<<"$INJECTED"
    includes "$tree" | violations >"$tree/found"
    while read -r file line; do
        [[ -z $file ]] || grep -q "^$file:1:" "$tree/found" || printf '%s  %s\n' "$file" "$line"
    done <<<"$INJECTED"
    rm -rf "$tree"
}

# Calls upward that no include shows: what is declared low and defined high.
PLANTED='
bench/options/x.c    bench/x.c
bench/stats/x.c      bench/options/y.c
bench/job/x.c        bench/campaign/x.c
runtime/graph/x.c    runtime/train/x.c
runtime/state/x.c    bench/record/x.c'

# Prints the planted calls that went unseen.
uncalled() {
    local tree from to name n=0
    tree=$(mktemp -d)
    while read -r from to; do
        [[ -n $from ]] || continue
        name=planted_$((++n))
        mkdir -p "$tree/${from%/*}" "$tree/${to%/*}"
        printf 'int %s(void);\nint caller_%s(void);\nint caller_%s(void) { return %s(); }\n' "$name" "$name" "$name" "$name" >"$tree/$from"
        printf 'int %s(void);\nint %s(void) { return 1; }\n' "$name" "$name" >"$tree/$to"
        (cd "$tree" && "${CC:-cc}" -c "$from" -o "${from%.c}.o" && "${CC:-cc}" -c "$to" -o "${to%.c}.o")
    done <<<"$PLANTED"
    calls "$tree" "$tree" | violations >"$tree/found"
    n=0
    while read -r from to; do
        [[ -z $from ]] || grep -q "^$from:planted_$((++n)): .* may not use $to" "$tree/found" || printf '%s calls %s\n' "$from" "$to"
    done <<<"$PLANTED"
    rm -rf "$tree"
}

failed=0
verdict() { # verdict NUMBER WORDS FINDINGS
    if [[ -z $3 ]]; then
        echo "ok $1 - $2"
    else
        echo "not ok $1 - $2"
        echo "$3"
        failed=1
    fi
}

echo 1..4
verdict 1 "includes follow the arrows" "$(includes . | violations)"
verdict 2 "each injected include that breaks them is seen" "$(unseen)"
verdict 3 "calls follow the arrows" "$(calls . "${EVENLOAD_BUILD:-build}" | violations)"
verdict 4 "each planted call that breaks them is seen" "$(uncalled)"
exit "$failed"
