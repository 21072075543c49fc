#!/usr/bin/env bash
# The proof under fault: runs the tests that make faults and prints a table.
#
#   scripts/faults.sh               a few minutes; exit code 1 when anything was lost or a test failed
#   scripts/faults.sh long          the long form, at most an hour
#   scripts/faults.sh planted       known faults, planted in copies of the code: a test must catch each
#   scripts/faults.sh table FILE    the table of what tests appended to FILE ($ROLLCALL_FAULTS_FILE)
#
# More flags: -json prints JSON; -only TEXT runs only rows with that number or text (M8, snapshot).
set -euo pipefail
cd "$(dirname "$0")/.."
bin=$(mktemp -d)
trap 'rm -rf "$bin"' EXIT
go build -o "$bin/faults" ./test/faults
form=${1:-short}
[ $# -eq 0 ] || shift
case "$form" in
  short) "$bin/faults" "$@" ;;
  long) timeout 3600 "$bin/faults" -long "$@" ;;
  planted) "$bin/faults" -planted test/faults/planted "$@" ;;
  table) file=${1:?which file of figures?}; shift; "$bin/faults" -from "$file" "$@" ;;
  -*) "$bin/faults" "$form" "$@" ;;
  *) sed -n '2,9p' "$0" | cut -c3- >&2; exit 2 ;;
esac
