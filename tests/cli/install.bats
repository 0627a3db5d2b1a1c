# An installation: `make install` into a folder, moved, with nothing but PATH set; its man page and completions; and with
# --long the tarball and the Debian package. README's commands are run from such an installation in readme.bats.
load common

ROOT=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)

# Once for all tests of this file, moved after it was made: no path of the first place may be left in use.
setup_file() {
    export INSTALLED BEFORE
    BEFORE=$(mktemp -d "${TMPDIR:-/tmp}/evenload-XXXXXX") INSTALLED=$BEFORE-moved
    make -C "$ROOT" -s install DESTDIR="$BEFORE" PREFIX=/opt/even >"$BEFORE.log" 2>&1 || { cat "$BEFORE.log" && return 1; }
    mv "$BEFORE" "$INSTALLED"
}

teardown_file() {
    rm -rf "$INSTALLED" "$BEFORE.log"
}

there() { # there FILE: the path of an installed file
    printf '%s/opt/even/%s' "$INSTALLED" "$1"
}

alone() { # alone COMMAND...: with nothing set but PATH
    env -i PATH="$(there bin):$PATH" "$@"
}

@test "a moved installation finds its modules" {
    local module name
    run --separate-stderr alone evenload devices
    [[ $status -eq 0 ]] || show
    for module in "$EVENLOAD_BUILD"/modules/*.so; do
        [[ -e $module ]] || continue
        name=${module##*/}
        cmp "$module" "$(there "lib/evenload/modules/$name")" || { echo "$name is not installed" && show; }
    done
    [[ $output == "$("$EVENLOAD" devices)" ]] || show
    # What is opened is the installed file.
    [[ ! -e $(there lib/evenload/modules/el_dnnl.so) ]] || {
        mv "$(there lib/evenload/modules/el_dnnl.so)" "$INSTALLED/aside"
        run --separate-stderr alone evenload devices
        mv "$INSTALLED/aside" "$(there lib/evenload/modules/el_dnnl.so)"
        [[ $output == *"oneDNN   no "* ]] || show
    }
}

@test "it trains, writes under the current folder, and draws with its own scripts" {
    run --separate-stderr alone evenload run --mode dp --devices null:2 "${QUICK[@]}" --quiet --out mine
    [[ $status -eq 0 && -s mine/results.json ]] || show
    run --separate-stderr alone evenload run "${QUICK[@]}" --devices null:1 --quiet
    [[ $status -eq 0 && $(echo results/*-run) == results/2*-run ]] || show
    # A gnuplot that only says what it was given: the scripts are the installation's.
    mkdir -p tools
    printf '#!/bin/sh\necho "$@" >>"%s/given"\n' "$PWD" >tools/gnuplot
    chmod +x tools/gnuplot
    run --separate-stderr env -i PATH="$PWD/tools" "$(there bin/evenload)" plot mine
    grep -q -- "-c $INSTALLED/opt/even/.*plots/memory.gnuplot" given || show
    ! grep -q "$ROOT" given || show
}

# The folders that are looked at are links to real modules: taken, oneDNN would be there.
@test "a program that was copied alone takes no files of a folder that others may write to, nor of its sources" {
    says() { # says WORDS: of oneDNN's module
        scratch/alice/evenload devices --json >devices.json
        [[ $(json devices.json 'd["libraries"][0]["detail"]') == *$1 ]] || { cat devices.json && return 1; }
    }
    local refused="is not used: it belongs to another user, or others may write to it"
    mkdir -p scratch/alice scratch/lib/evenload real
    ln "$EVENLOAD" scratch/alice 2>/dev/null || cp "$EVENLOAD" scratch/alice
    cp -r "$ROOT/plots" scratch
    cp "$EVENLOAD_BUILD"/modules/* real 2>/dev/null || skip "this build has no module"
    cp -r real scratch/modules
    says "dnnl: not built (its library was missing when evenload was built)"
    run scratch/alice/evenload plan --params 1B --devices 2 --machine h100-sxm
    [[ $status -eq 2 && $output == *"no machine of that name"* ]] || show
    ln -s ../../real scratch/alice/modules
    chmod o+w real
    says "/scratch/alice/modules $refused"
    chmod o-w real
    [[ ! -e real/el_dnnl.so ]] || says "oneDNN *"
    if [[ $(id -u) -eq 0 ]]; then
        chown -h nobody scratch/alice/modules
        says "/scratch/alice/modules $refused"
    fi
    rm scratch/alice/modules
    cp -r real scratch/lib/evenload/modules
    chmod o+w scratch/lib
    says "/scratch/alice/../lib/evenload/modules $refused"
}

@test "where no folder can be made for the results, a line says so" {
    cd /proc
    refuses "--out" alone evenload run "${QUICK[@]}" --devices null:1 --quiet
}

@test "the man page has every command and option, and no fault of form" {
    local page commands help word
    page=$(there share/man/man1/evenload.1)
    commands=$(every_command)
    [[ $commands == *compare*run*trace-stats*verify* ]] || { echo "$commands" && return 1; }
    help=$(for word in $commands; do "$EVENLOAD" help "$word" all; done)
    while read -r word; do
        grep -q "^.fB${word//-/\\\\-}[ \\]" "$page" || { echo "no $word in the man page" && return 1; }
    done < <(grep -oE '^  --[a-z0-9-]+' <<<"$help" | sort -u)
    for word in $commands; do
        grep -q "^.SS $word\$" "$page" || { echo "no $word in the man page" && return 1; }
    done
    while read -r word; do
        sed 1,/^.SH.ENVIRONMENT/d "$page" | grep -qF "${word//-/\\-}" || { echo "no $word in the man page" && return 1; }
    done < <("$EVENLOAD" help environment | grep -oE '^  [A-Z][A-Z_0-9*, ]*[A-Z*]')
    command -v groff >/dev/null || skip "groff is not installed"
    run groff -man -Tascii -ww -z "$page"
    [[ $status -eq 0 && -z $output ]] || show
}

@test "every link of the pages leads somewhere, in the sources and where they are installed" {
    run python3 "$ROOT/tests/cli/links.py" "$ROOT" "$(there share/doc/evenload)"
    [[ $status -eq 0 && -s $(there share/doc/evenload/README.zh.md) ]] || show
}

@test "every environment variable that is read is listed, by the program and in docs/install.md" {
    "$EVENLOAD" help environment >listed
    run python3 "$ROOT/tests/cli/variables.py" "$ROOT" listed
    [[ $status -eq 0 ]] || show
}

@test "bash completes commands, options, values and lists" {
    cat >ask.bash <<'END'
source "$1"
shift
[[ $(complete -p evenload) == 'complete -F _evenload evenload' ]] || exit 1
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_evenload
echo "${COMPREPLY[*]}"
END
    asks() { # asks REPLY WORD...
        local reply=$1
        shift
        run env PATH="$(there bin):$PATH" bash ask.bash "$(there share/bash-completion/completions/evenload)" evenload "$@"
        [[ $status -eq 0 && $output == "$reply" ]] || show
    }
    asks "regress" reg
    asks "--mode --model" run --mo
    asks "--modes --model" compare --mo
    asks "$("$EVENLOAD" help run all | sed -nE '/^Modes/,/^$/s/^  ([a-z0-9]+) .*/\1/p' | xargs)" run --mode ''
    asks "dp ddp" run --mode = d
    asks "resnet18 resnet50" run --model res
    asks "trace-stats" tr
    asks "dp,single" compare --modes dp,si
    asks "adam adamw" run --optimizer a
    asks "" run --batch ''
    mkdir folder
    asks "folder" plot f
    asks "ask.bash" run --test as
    asks "ask.bash" watch -- ./nothing ask.b
}

@test "zsh and fish take their completions" {
    local missing=
    if command -v zsh >/dev/null; then
        run zsh -f -c 'fpath=($1 $fpath); autoload -U compinit; compinit -u -D; print $_comps[evenload]; zsh -n $1/_evenload' - \
            "$(there share/zsh/site-functions)"
        [[ $status -eq 0 && $output == _evenload ]] || show
    else
        missing=zsh
    fi
    if command -v fish >/dev/null; then
        run env HOME="$PWD" PATH="$(there bin):$PATH" fish -c 'source $argv[1]; complete -C "evenload run --mod"; complete -C "evenload run --mode d"' \
            "$(there share/fish/vendor_completions.d/evenload.fish)"
        [[ $status -eq 0 && $output == *--mode*--model*ddp*dp* ]] || show
    else
        missing=${missing:+$missing and }fish
    fi
    [[ -z $missing ]] || skip "$missing: not installed"
}

@test "uninstall leaves no file" {
    local copy=$PWD/copy
    cp -r "$INSTALLED" "$copy"
    make -C "$ROOT" -s uninstall DESTDIR="$copy" PREFIX=/opt/even
    run find "$copy" ! -type d
    [[ -z $output ]] || show
}

@test "PREFIX that held libraries is not taken for their place without a word" {
    mkdir -p libs/include
    touch libs/include/jansson.h
    run make -C "$ROOT" -s --no-print-directory report PREFIX="$PWD/libs"
    [[ $status -eq 0 && $output == *"LIBS_PREFIX=$PWD/libs"* ]] || show
    run make -C "$ROOT" -s --no-print-directory flags report LIBS_PREFIX="$PWD/libs"
    [[ $output == *"looking in $PWD/libs too"* && $output != *note:* ]] || show
    # Foreign headers: their warnings are not ours.
    [[ $output == *"-isystem $PWD/libs/include"* && $output != *"-I$PWD/libs"* ]] || show
}

# The tarball of the last commit, unpacked where there is no git, builds a package; a bare Debian takes it, and the program runs there
# without what the package only recommends, and says so.
@test "a Debian package from the tarball runs in a bare root" {
    local tool commit root=$PWD/root
    long "the Debian package in a bare root, about three minutes"
    for tool in git dpkg-buildpackage dh; do command -v "$tool" >/dev/null || skip "$tool is not installed"; done
    git -C "$ROOT" rev-parse HEAD >/dev/null 2>&1 || skip "no git repository here"
    commit=$(git -C "$ROOT" describe --always --abbrev=12)
    run make -C "$ROOT" -s deb BUILD="$PWD/build"
    [[ $status -eq 0 ]] || show
    [[ $(tar -xzOf build/evenload-*.tar.gz --wildcards '*/packaging/commit') == "$commit" ]] || show
    bare_root "$root"
    cp build/deb/evenload_*.deb "$root/tmp"
    cp /etc/resolv.conf "$root/etc"
    run chroot "$root" sh -c 'apt-get install -y -qq --no-install-recommends /tmp/evenload_*.deb && cd /root && evenload devices &&
        evenload run --mode ddp --devices 2 --quiet --model mlp --data dummy --steps 2 --min-time 0 --out first && evenload plot first;
        test -s first/results.json && test -s /usr/share/man/man1/evenload.1.gz && evenload --version'
    umount "$root/proc"
    [[ $status -eq 0 && $output == *"oneDNN   no "*libdnnl* && $output == *"MPI      no "* && $output == *"gnuplot  no "* ]] || show
    [[ ${lines[-1]} == "evenload "*"($commit)" ]] || show
}

# A bare root stands for the base image, chroot for the builder.
@test "the Dockerfile's steps run in a bare root, and its program trains there" {
    local root=$PWD/root at=/ word rest
    long "the Dockerfile's steps in a bare root, about three minutes"
    git -C "$ROOT" rev-parse HEAD >/dev/null 2>&1 || skip "no git repository here"
    bare_root "$root"
    cp /etc/resolv.conf "$root/etc"
    while read -r word rest; do
        case $word in
        COPY)
            [[ $rest == ". /opt/evenload" ]]
            mkdir -p "$root/opt/evenload" && git -C "$ROOT" archive HEAD | tar -xC "$root/opt/evenload"
            ;;
        WORKDIR) at=$rest && mkdir -p "$root$at" ;;
        RUN)
            run chroot "$root" env DEBIAN_FRONTEND=noninteractive sh -c "cd $at && $rest"
            [[ $status -eq 0 ]] || show
            ;;
        ENTRYPOINT) [[ $rest == '["evenload"]' ]] ;;
        esac
    done <"$ROOT/Dockerfile"
    run chroot "$root" sh -c "cd $at && evenload devices && evenload compare --model mlp --data dummy --repeats 1 --steps 2 --min-time 0 --out compared"
    umount "$root/proc"
    [[ $status -eq 0 && $output == *"oneDNN   yes"* && $output == *"plots/"* ]] || show
    [[ -z $(find "$root/opt/evenload/build" -name '*.o' 2>/dev/null) ]] # the image has no objects
}
