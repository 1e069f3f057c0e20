#!/usr/bin/env bash
# Builds the package, runs R CMD check (installation, examples, tests, vignette) and the code of README.md,
# whose output must be the one that is shown there.
#
#   bindings/r/test.sh
#
# S3CMTF_PREFIX names an installed copy of the library; without it the library is built and installed into a temporary prefix.
set -euo pipefail
package=$(cd "$(dirname "$0")" && pwd)
skip() { echo "SKIPPED: $1" && exit 0; }

command -v R >/dev/null || skip "R is not installed, the R package is not tested"
missing() {
  for name in tinytest Matrix knitr markdown; do
    Rscript -e "quit(status = !requireNamespace('$name', quietly = TRUE))" >/dev/null 2>&1 || printf ' r-cran-%s' "${name,,}"
  done
}
packages=$(missing)
if [ -n "$packages" ] && command -v apt-get >/dev/null; then
  # shellcheck disable=SC2086
  install() { apt-get install -y --no-install-recommends $packages >/dev/null 2>&1; }
  install || { apt-get update >/dev/null 2>&1 && install; } || true
  packages=$(missing)
fi
case $packages in
  *tinytest*) skip "tinytest is not installed, the R package is not tested" ;;
  *knitr* | *markdown*) echo "SKIPPED: knitr and markdown are not installed, the vignette is not built" && vignettes=no ;;
  *) vignettes=yes ;;
esac

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ -z "${S3CMTF_PREFIX:-}" ]; then
  export S3CMTF_PREFIX=$work/prefix
  "$package/../../packaging/install.sh" "$S3CMTF_PREFIX"
fi

cd "$work"
if [ $vignettes = yes ]; then
  R CMD build --no-manual "$package" >build.log 2>&1 || { cat build.log && exit 1; }
  R CMD check --no-manual s3cmtf_*.tar.gz 2>&1 | tee check.log
else
  R CMD build --no-manual --no-build-vignettes "$package" >build.log 2>&1 || { cat build.log && exit 1; }
  R CMD check --no-manual --ignore-vignettes s3cmtf_*.tar.gz 2>&1 | tee check.log
fi
if grep -qE '(ERROR|WARNING)S?$' check.log; then
  cat s3cmtf.Rcheck/00install.out s3cmtf.Rcheck/tests/*.fail 2>/dev/null || true
  exit 1
fi
grep -h 'skipped:' s3cmtf.Rcheck/tests/*.Rout || true
grep -hE 'All ok|[0-9]+ results|tests' s3cmtf.Rcheck/tests/tinytest.Rout | tail -n 1

echo "== README.md"
awk '/^```r$/ { code = 1; next } /^```/ { code = 0 } code' "$package/README.md" >readme.R
R_LIBS=$work/s3cmtf.Rcheck Rscript readme.R >readme.out 2>readme.err || { cat readme.out readme.err && exit 1; }
# The output of the quick start, whose numbers and column widths may differ between processors.
awk '/^```text$/ { text = 1; next } /^```/ { text = 0 } text' "$package/README.md" >shown.out
without_numbers() { sed -E 's/[0-9.]+/#/g; s/ +/ /g'; }
diff <(without_numbers <shown.out) <(head -n "$(wc -l <shown.out)" readme.out | without_numbers) ||
  { echo "README.md shows other output than its code prints" && exit 1; }
echo "$(wc -l <readme.R) lines of code, $(wc -l <readme.out) lines of output, $(wc -l <shown.out) of them as shown"
