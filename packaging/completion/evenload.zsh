#compdef evenload
# zsh completion of evenload: the program's own help says which commands, options and values there are.
_evenload_names() { # _evenload_names HEADING: the names under it in the help
  sed -n "/^$1\$/,/^\$/s/^  \([a-z][a-z0-9]*\) .*/\1/p" <<<$help | tr '\n' ' '
}
_evenload() {
  local program=$words[1] help
  local -a commands options
  if (( CURRENT == 2 )) || [[ $words[2] == help ]]; then
    commands=(${(f)"$($program help 2>/dev/null | sed -n 's/^  \([a-z][a-z-]*\)  */\1:/p')"})
    _describe command commands
    return
  fi
  shift words
  (( CURRENT-- ))
  local at=${words[(i)--]}
  if [[ $words[1] == watch ]] && (( at < CURRENT )); then # the watched command's own completion
    shift at words
    (( CURRENT -= at ))
    _normal
    return
  fi
  help=$($program help $words[1] all 2>/dev/null)
  # "--name[words]:value:(a b)" of each option's entry, "  --name NAME   words (a|b; default: a)" and further lines of words.
  options=(${(f)"$(awk -v modes="$(_evenload_names Modes)" -v models="$(_evenload_names Models)" '
    function put() {
      if (name == "") return
      value = argument == "" ? "" : argument == "DIR" ? ":folder:_files -/" : argument ~ /^FILE/ ? ":file:_files" : ":value: "
      if (match(entry, /\([^ ()]+\|[^ ();]+/)) value = ":value:(" substr(entry, RSTART + 1, RLENGTH - 1) ")"
      gsub(/\|/, " ", value)
      if (entry ~ /listed below/) value = name == "--modes" ? ":list:_values -s , mode " modes : ":value:(" (name == "--model" ? models : modes) ")"
      sub(/[;:(].*/, "", entry); gsub(/[][\\`$]/, "", entry)
      print name "[" entry "]" value
      name = ""
    }
    /^  (-., )?--/ {
      put(); sub(/^  (-., )?/, ""); name = $1; argument = $2 ~ /^[A-Z|]+$/ ? $2 : ""
      entry = $0; sub(/^[^ ]+ [A-Z|]* */, "", entry); next
    }
    name != "" && /^   / { sub(/^ */, ""); entry = entry " " $0; next }
    { put() }' <<<$help)"})
  _arguments $options '*:folder:_files -/'
}
_evenload "$@"
