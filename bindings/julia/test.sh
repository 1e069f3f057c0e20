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
# Installed by Pkg into an empty depot and project. An empty registry, so that Pkg does not download the general one: the package
# depends on the standard library only.
export JULIA_DEPOT_PATH=$work/depot
mkdir -p "$work/depot/registries/Empty"
cat >"$work/depot/registries/Empty/Registry.toml" <<'END'
name = "Empty"
uuid = "23338594-aafe-5451-b93e-139f81909106"
repo = ""
description = "A registry without packages"

[packages]
END
mkdir "$work/project" && export JULIA_PROJECT=$work/project
export JULIA_NUM_THREADS=${JULIA_NUM_THREADS:-2}
cd "$work"
"$julia" --startup-file=no -e 'import Pkg; Pkg.develop(Pkg.PackageSpec(path=ARGS[1])); Pkg.build("S3CMTF")' "$package" >"$work/log" 2>&1 ||
  { cat "$work/log" && exit 1; }
# Most of the time is compilation.
"$julia" --startup-file=no --optimize=1 "$package/test/runtests.jl"
