# What .ci/run and .ci/dask count, sourced by both: passed, failed, skipped.
passed=0
failed=0
skipped=0

# add_counts LINE: adds a line `N passed, N failed[, N skipped]`. One that counts nothing is a failure.
add_counts() {
  local good bad left
  read -r good _ bad _ left _ <<<"$1"
  if [[ -z $good || $((good + bad + ${left:-0})) -eq 0 ]]; then
    echo '--- it ran nothing'
    failed=$((failed + 1))
    return
  fi
  passed=$((passed + good))
  failed=$((failed + bad))
  skipped=$((skipped + ${left:-0}))
}

# missing WHAT WHY: something cannot run here. A failure where CI=true, unless CI_ALLOW_MISSING names it.
missing() {
  if [[ ${CI:-} == true && " ${CI_ALLOW_MISSING:-} " != *" $1 "* ]]; then
    echo "--- $2: FAILED, since CI needs it; CI_ALLOW_MISSING=\"$1\" says that it may be missing"
    failed=$((failed + 1))
  else
    echo "=== $2: skipped"
    skipped=$((skipped + 1))
  fi
}

# vitest_counts FILE: the line of a JSON report of Vitest. A file that does not even load has no failed test,
# so it is counted as one.
vitest_counts() {
  node -e '
    const report = JSON.parse(require("node:fs").readFileSync(process.argv[1], "utf8"));
    const failed = Math.max(report.numFailedTests, report.numFailedTestSuites > 0 ? 1 : 0);
    const skipped = report.numPendingTests + report.numTodoTests;
    console.log(`${report.numPassedTests} passed, ${failed} failed, ${skipped} skipped`);
  ' "$1"
}

# finish: prints the counts alone on the last line, and ends with 1 when something failed.
finish() {
  echo "$passed passed, $failed failed, $skipped skipped"
  [[ $failed -eq 0 ]]
  exit
}
