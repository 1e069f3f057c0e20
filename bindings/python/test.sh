#!/usr/bin/env bash
# Builds the wheel, installs it into a new virtual environment, and runs all tests of the package.
#
#   bindings/python/test.sh [ARGUMENTS OF PYTEST]
#
# PYTHON is the interpreter (default: python3). If S3CMTF_PREFIX names a folder of packaging/install.sh, the tests use the library
# there instead of that of the wheel. S3CMTF_FIXTURE is the file of factors from C for the test of equality.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
python=${PYTHON:-python3}
skip() {
  echo "SKIPPED: tests of the Python package: $*" >&2
  exit 0
}
command -v "$python" >/dev/null || skip "there is no $python"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 9))' || skip "$python is older than 3.9"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$python" -m venv "$work/env" 2>/dev/null || skip "$python has no module venv"
cd "$work"
requirements() {
  "$work/env/bin/python" - "$here/pyproject.toml" <<'END'
import sys
try:
    import tomllib
except ImportError:
    from pip._vendor import tomli as tomllib
with open(sys.argv[1], "rb") as file:
    project = tomllib.load(file)
print(*project["build-system"]["requires"], *project["project"]["dependencies"], sep="\n")
print(*project["project"]["optional-dependencies"]["test"], sep="\n")
END
}
requirements >requirements.txt
env/bin/pip install --quiet --no-compile --disable-pip-version-check --only-binary :all: -r requirements.txt ||
  skip "their requirements cannot be installed"
if [ -n "${S3CMTF_PREFIX:-}" ]; then
  # The tests use the library there, so that of the wheel need not be fast.
  export CARGO_TARGET_DIR=$work/target CARGO_PROFILE_RELEASE_OPT_LEVEL=0
fi
PATH=$work/env/bin:$PATH env/bin/pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps "$here"

if [ -n "${S3CMTF_PREFIX:-}" ]; then
  S3CMTF_LIBRARY=$(find "$S3CMTF_PREFIX" -name 'libs3cmtf.so' -print -quit)
  export S3CMTF_LIBRARY
fi
env/bin/python -c 'import s3cmtf; print(s3cmtf.__file__, s3cmtf.build_info())'
MPLBACKEND=Agg env/bin/python -m pytest "$here/tests" -c "$here/pyproject.toml" -p no:cacheprovider "$@"
