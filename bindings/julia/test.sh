#!/usr/bin/env bash
# Tests the Julia package: its declarations against the header, then, with Julia, all its tests, the quick start and the example.
#
#   bindings/julia/test.sh
#
# S3CMTF_PREFIX names an installed copy of the library; without it the library is built and installed into a temporary prefix. JULIA
# names the program; without it and without `julia` in PATH, Julia is unpacked into S3CMTF_JULIA_PREFIX (by default a folder of the
# user's cache) by get-julia.sh.
set -euo pipefail
package=$(cd "$(dirname "$0")" && pwd)
"$package/test/signatures.py"

julia=${JULIA:-$(command -v julia || true)}
if [ -z "$julia" ]; then
  prefix=${S3CMTF_JULIA_PREFIX:-${XDG_CACHE_HOME:-$HOME/.cache}/s3cmtf-julia}
  if ! "$package/get-julia.sh" "$prefix"; then
    echo "SKIPPED: Julia is not installed and cannot be downloaded; only the declarations of the package were tested"
    exit 0
  fi
  julia=$prefix/bin/julia
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ -z "${S3CMTF_PREFIX:-}" ]; then
  export S3CMTF_PREFIX=$work/prefix
  "$package/../../packaging/install.sh" "$S3CMTF_PREFIX"
fi
# An empty depot: nothing of the user's packages is used, and nothing remains.
export JULIA_DEPOT_PATH=$work/depot
export JULIA_NUM_THREADS=${JULIA_NUM_THREADS:-2}
cd "$work"
"$julia" --startup-file=no --project="$package" "$package/test/runtests.jl"
