#!/usr/bin/env bash
# Compares the times of the packages with those of C: see fixture/bench.c. Run it on an idle machine.
#
#   bindings/bench.sh [python] [r] [julia]
#
# S3CMTF_PREFIX names an installed copy of the library. The packages must be installed: python3, Rscript and julia, or the programs
# named by PYTHON, RSCRIPT and JULIA, find them. C and each package run in turn, ROUNDS times (default 3); the table has the fastest
# time of each and its ratio to C.
set -euo pipefail
bindings=$(cd "$(dirname "$0")" && pwd)
: "${S3CMTF_PREFIX:?names an installed copy of the library (packaging/install.sh PREFIX)}"
packages=("$@")
[ $# -gt 0 ] || packages=(python r julia)

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
libraries=$(dirname "$(dirname "$(find -L "$S3CMTF_PREFIX" -path '*/pkgconfig/s3cmtf.pc' | head -n 1)")")
"${CC:-cc}" -std=c99 -O2 "$bindings/fixture/bench.c" -I"$S3CMTF_PREFIX/include" -L"$libraries" -Wl,-rpath,"$libraries" -ls3cmtf \
  -o "$work/bench"

run() {
  case $1 in
    c) "$work/bench" ;;
    python) "${PYTHON:-python3}" "$bindings/python/bench.py" ;;
    r) "${RSCRIPT:-Rscript}" "$bindings/r/bench.R" ;;
    julia) "${JULIA:-julia}" --startup-file=no "$bindings/julia/bench.jl" ;;
    *) sed -n '2,8s/^# \{0,1\}//p' "$0" >&2 && exit 2 ;;
  esac
}
for ((round = 0; round < ${ROUNDS:-3}; round++)); do
  for package in "${packages[@]}"; do
    for program in c "$package"; do
      run "$program" >"$work/times"
      sed "s/^/$program /" "$work/times" >>"$work/all"
    done
  done
done
awk '
  !(($1, $2) in fastest) || $3 < fastest[$1, $2] { fastest[$1, $2] = $3 }
  !(($1, $2) in seen) { seen[$1, $2] = ++lines; package[lines] = $1; name[lines] = $2 }
  END {
    printf "%-7s %-20s %9s %9s %6s\n", "package", "measurement", "seconds", "C", "ratio"
    for (i = 1; i <= lines; i++) {
      if (package[i] == "c") continue
      reference = name[i]
      sub(/_view$/, "", reference)
      c = fastest["c", reference]
      printf "%-7s %-20s %9.4f %9.4f %6.3f\n", package[i], name[i], fastest[package[i], name[i]], c, fastest[package[i], name[i]] / c
    }
  }' "$work/all"
