# shellcheck shell=bash
# bash completion of evenload: the program's own help says which commands, options and values there are.
_evenload_list() { # one of the words, or a list of them by comma
    local head=
    [[ $cur != *,* ]] || head=${cur%,*},
    mapfile -t COMPREPLY < <(compgen -P "$head" -W "$1" -- "${cur##*,}")
}
_evenload_paths() {
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen "$1" -- "$cur")
}
_evenload() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} program=${COMP_WORDS[0]} command=${COMP_WORDS[1]} help entry list
    [[ $cur != = ]] || cur=
    [[ $prev != = ]] || prev=${COMP_WORDS[COMP_CWORD - 2]}
    COMPREPLY=()
    if ((COMP_CWORD == 1)) || [[ $command == help ]]; then
        _evenload_list "$("$program" help 2>/dev/null | sed -n 's/^  \([a-z][a-z-]*\)  .*/\1/p') help"
        return
    fi
    if [[ $command == watch && " ${COMP_WORDS[*]:0:COMP_CWORD} " == *' -- '* ]]; then
        mapfile -t COMPREPLY < <(compgen -A command -A file -- "$cur")
        return
    fi
    help=$("$program" help "$command" all 2>/dev/null)
    # What the help says of the option before: " --mode NAME words (a|b; default: a)", in one line.
    entry=$(awk -v option="$prev" '/^  -/ { on = $1 == option || $1 == option "," || $2 == option } /^$/ { on = 0 } on' <<<"$help" | tr -s '\n ' ' ')
    if [[ ! $entry =~ ^\ (-.,\ )?--[^\ ]+\ ([A-Z|]+)\  ]]; then # it takes no value
        [[ $cur != -* ]] || _evenload_list "$(sed -nE 's/^  (-., )?(--[^ ]+) .*/\2/p' <<<"$help")"
        [[ $cur == -* ]] || _evenload_paths -d
        return
    fi
    case ${BASH_REMATCH[2]} in
    DIR) _evenload_paths -d && return ;;
    FILE*) _evenload_paths -f && return ;;
    esac
    list=Modes
    [[ $prev != --model ]] || list=Models
    if [[ $entry == *'listed below'* ]]; then
        _evenload_list "$(sed -nE "/^$list\$/,/^\$/s/^  ([a-z0-9]+) .*/\1/p" <<<"$help")"
    elif [[ $entry =~ \(([^\ \(\)]+\|[^\ \(\)\;]+) ]]; then
        _evenload_list "${BASH_REMATCH[1]//|/ }"
    fi
}
complete -F _evenload evenload
