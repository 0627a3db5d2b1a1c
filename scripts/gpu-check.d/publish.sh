# shellcheck shell=bash
# What scripts/gpu-check leaves behind: one folder, or one archive of it, that may be committed. Logs lose their middle, all text
# loses the machine's paths and names; of the comparison's folder the record and the plots stay. Sourced, never run.

LOG_LINES=400 # of a log's begin, and as many of its end

# A path as the reader would type it.
path_for_reader() { say "${1#"$PWD"/}"; }

# What text must lose: this checkout's path, the folders for temporary files, the home folder and the host's name.
scrub() {
    local host
    host=$(uname -n)
    sed -E -e "s|$(quoted "$WORK")/?||g" -e "s|$(quoted "$PWD")/?||g" -e "s|$(quoted "${HOME:-/root}")/|~/|g" \
        -e "s|\\b$(quoted "$host")\\b|host|g" -e 's|/tmp/[A-Za-z0-9._/-]*/||g' -e 's/("boot_id": ")[^"]*"/\1"/'
}

quoted() { sed 's/[][\.*^$+?(){}|/]/\\&/g' <<<"$1"; }

trim_log() { # reads a log
    awk -v keep="$LOG_LINES" '
        { line[NR] = substr($0, 1, 400) }
        END {
            for (i = 1; i <= NR; i++) {
                if (i == keep + 1 && NR > 2 * keep) { print "[" NR - 2 * keep " lines left out]"; i = NR - keep + 1 }
                print line[i]
            }
        }'
}

copy_record() { # copy_record FROM TO: a run's record and its plots
    local file
    mkdir -p "$2/plots"
    for file in "$1"/results.json "$1"/*.csv "$1"/plots/*.dat; do
        [[ ! -f $file ]] || scrub <"$file" >"$2/${file#"$1"/}"
    done
    for file in "$1"/plots/*.svg; do
        [[ ! -f $file ]] || cp "$file" "$2/plots/"
    done
    rmdir "$2/plots" 2>/dev/null || true
}

fill_folder() { # fill_folder WORK FOLDER
    local file
    mkdir -p "$2"
    for file in "$1"/summary.txt "$1"/environment.txt "$1"/clocks.csv "$1"/*.json; do
        [[ ! -f $file ]] || scrub <"$file" >"$2/${file##*/}"
    done
    for file in "$1"/*.log; do
        [[ ! -f $file ]] || trim_log <"$file" | scrub >"$2/${file##*/}"
    done
    for file in "$1"/runs/*/; do
        [[ ! -d $file ]] || copy_record "${file%/}" "$2/$(basename "$file")"
    done
    # Of other programs: as they wrote them.
    [[ ! -d $1/files ]] || cp -r "$1/files" "$2/"
}

# After every part, so that a run that is ended from outside leaves what it had.
publish_folder() { # publish_folder WORK FOLDER|FILE.tar.gz
    local name
    if [[ $2 != *.tar.gz ]]; then
        fill_folder "$1" "$2"
        return 0
    fi
    name=$(basename "$2" .tar.gz)
    mkdir -p "$(dirname "$2")"
    fill_folder "$1" "$1/pack/$name"
    tar -C "$1/pack" -czf "$1/pack.tar.gz" "$name"
    mv "$1/pack.tar.gz" "$2"
}

# The commit; where the tree came without its history what --prepare noted, which says so: the tree may have changed since.
commit_of_tree() { # commit_of_tree PREFIX
    git describe --always --dirty --abbrev=12 2>/dev/null || sed 's/$/-when-prepared/' "$1/commit" 2>/dev/null || say unknown
}
