# fish completion of evenload: the program's own help says which commands, options and values there are.
function __evenload_words
    set -l given (commandline -opc)
    set -l help (evenload help $given[2] all 2>/dev/null)
    set -l values
    switch $given[-1]
        case --mode --modes
            set values (printf '%s\n' $help | sed -n '/^Modes$/,/^$/s/^  \([a-z][a-z0-9]*\)  */\1\t/p')
        case --model
            set values (printf '%s\n' $help | sed -n '/^Models$/,/^$/s/^  \([a-z][a-z0-9]*\)  */\1\t/p')
        case '--*' # "(a|b; default: a)", somewhere in the option's entry
            set values (printf '%s\n' $help | awk -v option=$given[-1] '/^  -/ { on = $1 == option || $2 == option } on' |
                string match -rg '\(([^ ();]+\|[^ ();]+)' | string split '|')
    end
    if set -q values[1]
        printf '%s\n' $values
    else
        printf '%s\n' $help | sed -nE 's/^  (-., )?(--[^ ]+) [A-Z|]* */\2\t/p'
    end
end
complete -c evenload -n __fish_use_subcommand -f
complete -c evenload -n '__fish_use_subcommand; or __fish_seen_subcommand_from help' -f -a "(evenload help | sed -n 's/^  \([a-z][a-z-]*\)  */\1\t/p')"
complete -c evenload -n 'not __fish_use_subcommand; and not __fish_seen_subcommand_from help' -a '(__evenload_words)'
