#!/usr/bin/env bash
# Tests the packages for Python, R and Julia against one installed copy of the library.
#
#   bindings/test.sh [python] [r] [julia]
#
# Without arguments all packages are tested. S3CMTF_PREFIX names an installed copy of the library; without it the library is
# built and installed into a temporary prefix.
set -euo pipefail
bindings=$(cd "$(dirname "$0")" && pwd)
packages=("$@")
[ $# -gt 0 ] || packages=(python r julia)
for package in "${packages[@]}"; do
  case $package in
    python | r | julia) ;;
    *) sed -n '2,8s/^# \{0,1\}//p' "$0" >&2 && exit 2 ;;
  esac
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ -z "${S3CMTF_PREFIX:-}" ]; then
  echo "== library"
  export S3CMTF_PREFIX=$work/prefix
  "$bindings/../packaging/install.sh" "$S3CMTF_PREFIX"
fi
# The folder of libraries may be lib, lib64 or lib/ARCHITECTURE.
pkgconfig=$(dirname "$(find -L "$S3CMTF_PREFIX" -path '*/pkgconfig/s3cmtf.pc' | head -n 1)")
[ -e "$pkgconfig/s3cmtf.pc" ] || { echo "S3CMTF_PREFIX is $S3CMTF_PREFIX, which has no pkgconfig/s3cmtf.pc" >&2 && exit 1; }
libraries=$(dirname "$pkgconfig")

echo "== fixture"
"${CC:-cc}" -std=c99 -O2 -Wall -Wextra -Wpedantic -Werror "$bindings/fixture/fixture.c" -I"$S3CMTF_PREFIX/include" \
  -L"$libraries" -Wl,-rpath,"$libraries" -ls3cmtf -o "$work/fixture"
export S3CMTF_FIXTURE=$work/fixture.txt
"$work/fixture" >"$S3CMTF_FIXTURE"
echo "$(wc -w <"$S3CMTF_FIXTURE") words of factors and core from C"

summary=()
failed=0
for package in "${packages[@]}"; do
  echo "== $package"
  start=$SECONDS
  if [ ! -x "$bindings/$package/test.sh" ]; then
    result="skipped: bindings/$package/test.sh does not exist"
  elif "$bindings/$package/test.sh"; then
    result="passed in $((SECONDS - start)) s"
  else
    result="FAILED after $((SECONDS - start)) s" && failed=1
  fi
  summary+=("$package: $result")
done
echo "== summary"
printf '%s\n' "${summary[@]}"
exit $failed
