# What .ci/run and .ci/dask count, sourced by both: passed, failed, skipped.
passed=0
failed=0
skipped=0

# add_counts LINE [NAME]: adds a line `N passed, N failed[, N skipped]`. One that counts nothing is a failure. With NAME,
# `finish` names it when something failed.
add_counts() {
  local good bad left
  read -r good _ bad _ left _ <<<"$1"
  if [[ -z $good || $((good + bad + ${left:-0})) -eq 0 ]]; then
    echo '--- it ran nothing'
    failure "a step that ran nothing: '$1'"
    return
  fi
  passed=$((passed + good))
  failed=$((failed + bad))
  [[ $bad -eq 0 || -z ${2:-} ]] || name_failure "$2: $1"
  skipped=$((skipped + ${left:-0}))
}

# missing WHAT WHY: something cannot run here. A failure where CI=true, unless CI_ALLOW_MISSING names it.
missing() {
  if [[ ${CI:-} == true && " ${CI_ALLOW_MISSING:-} " != *" $1 "* ]]; then
    echo "--- $2: FAILED, since CI needs it; CI_ALLOW_MISSING=\"$1\" says that it may be missing"
    failure "$2"
  else
    echo "=== $2: skipped"
    skipped=$((skipped + 1))
  fi
}

# failure NAME: counts a failure. `finish` names all of them, those of scripts that this one runs included.
failure() {
  failed=$((failed + 1))
  name_failure "$1"
}

name_failure() { [[ -z ${FAILURES:-} ]] || echo "$1" >>"$FAILURES"; }

# finish: names what failed, prints the counts alone on the last line, and ends with 1 when something failed.
finish() {
  if [[ $failed -gt 0 && -s ${FAILURES:-} ]]; then
    echo '=== what failed'
    sed 's/^/  /' "$FAILURES"
  fi
  echo "$passed passed, $failed failed, $skipped skipped"
  [[ $failed -eq 0 ]]
  exit
}
