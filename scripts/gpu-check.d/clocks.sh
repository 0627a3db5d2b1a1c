# shellcheck shell=bash
# A client that holds the card for the whole check, because a driver gives a card up when its last client ends and takes seconds to start it
# again. It also logs what explains a figure: clocks, power and what slowed the card down. It changes no setting. Sourced, never run.

CLOCKS_FILE='' CLOCKS_PID='' CLOCKS_FROM=1

clocks_begin() { # clocks_begin FILE
    local reasons
    CLOCKS_FILE=$1
    : >"$CLOCKS_FILE"
    for reasons in clocks_event_reasons.active clocks_throttle_reasons.active; do # older drivers have the other name
        nvidia-smi --query-gpu="$reasons" --format=csv,noheader >/dev/null 2>&1 || continue
        nvidia-smi --query-gpu="clocks.sm,power.draw,$reasons,memory.used" --format=csv,noheader,nounits -lms 500 >"$CLOCKS_FILE" 2>/dev/null </dev/null &
        CLOCKS_PID=$!
        return
    done
}

clocks_end() { [[ -z $CLOCKS_PID ]] || kill "$CLOCKS_PID" 2>/dev/null || true; }

clocks_mark() { CLOCKS_FROM=$(($(wc -l <"$CLOCKS_FILE") + 1)); }

# "SM 1980 MHz, up to 689 W, power cap" since the mark, of the first card if there are several; nothing where nothing is known.
clocks_since() {
    tail -n +"$CLOCKS_FROM" "$CLOCKS_FILE" | {
        local mhz watts reasons most=0 peak=0 all=0 words='' bit
        while IFS=', ' read -r mhz watts reasons _; do
            [[ $mhz =~ ^[0-9]+$ ]] || continue
            ((mhz <= most)) || most=$mhz
            watts=${watts%.*}
            [[ ! $watts =~ ^[0-9]+$ ]] || ((watts <= peak)) || peak=$watts
            [[ ! $reasons =~ ^0x[0-9a-fA-F]+$ ]] || all=$((all | reasons))
        done
        ((most > 0)) || return 0
        for bit in 4:"power cap" 8:"hardware slowdown" 32:"thermal slowdown" 64:"hardware thermal slowdown" 128:"power brake"; do
            ((!(all & ${bit%%:*}))) || words+=", ${bit#*:}"
        done
        printf 'SM up to %d MHz, %d W%s' "$most" "$peak" "$words"
    }
}
