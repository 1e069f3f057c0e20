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

# test_package PACKAGE: runs the tests of a package and adds a line to the summary.
test_package() {
  local package=$1 start=$SECONDS result status=0
  echo "== $package"
  if [ ! -x "$bindings/$package/test.sh" ]; then
    result="skipped: bindings/$package/test.sh does not exist"
  elif "$bindings/$package/test.sh"; then
    result="passed in $((SECONDS - start)) s"
  else
    result="FAILED after $((SECONDS - start)) s" && status=1
  fi
  echo "$package: $result" >>"$work/summary"
  return $status
}

# The first package is tested in the background, in a process group that ends with this script. The others are tested one after
# another, because the tests of R and Julia both use the package lists of apt.
failed=0
set -m
test_package "${packages[0]}" >"$work/log" 2>&1 &
first=$!
set +m
trap 'kill -- -$first 2>/dev/null || true; rm -rf "$work"' EXIT
for package in "${packages[@]:1}"; do
  test_package "$package" || failed=1
done
wait $first || failed=1
cat "$work/log"
echo "== summary"
cat "$work/summary"
exit $failed
