#!/usr/bin/env bash
# Runs the C programs under AddressSanitizer and UndefinedBehaviorSanitizer (library and programs instrumented, test build
# of the library), and under the memcheck tool of valgrind. Any error or leak fails.
#
#   c_tests/sanitize.sh [address] [memcheck]
#
# CC is the compiler (gcc, clang). The library for memcheck is the one in SHARED (target/release).
set -euo pipefail
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}
cc=${CC:-gcc}
case $cc in
  *clang*) cxx=${cc/clang/clang++} ;;
  *) cxx=${cc/gcc/g++} ;;
esac
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
triple=$(rustc -vV | sed -n 's/^host: //p')
system_libraries="-lgcc_s -lutil -lrt -lpthread -lm -ldl"

# compile SOURCE FLAGS...
compile() {
  local source=$1
  shift
  case $source in
    *.cpp) "$cxx" -std=c++17 -g -Iinclude -Ic_tests "c_tests/$source" -o "$work/${source%.*}" "$@" ;;
    *) "$cc" -std=gnu99 -g -Iinclude -Ic_tests "c_tests/$source" -o "$work/${source%.*}" "$@" ;;
  esac
}

# check PROGRAM ARGUMENTS...: runs a program, optionally under a tool. It must succeed and print only the expected line.
check() {
  local log="$work/log" err="$work/err" program=$1
  shift
  # Some programs request more memory than exists on purpose.
  if ! ${tool:-} "$work/$program" "$@" >"$log" 2>"$err" || ! grep -qx "${expected:-ok}" "$log" ||
    grep -v 'WARNING: AddressSanitizer failed to allocate' "$err"; then
    cat "$log" "$err"
    echo "$program failed"
    exit 1
  fi
  echo "$program: no error, no leak"
}

# application: fits in one process and predicts in another.
application() {
  local i
  echo user,film,month,stars >"$work/ratings.csv"
  for ((i = 0; i < 2000; i++)); do
    echo "$((i * 7 % 50 + 1)),$((i * 11 % 30 + 1)),$((i % 6 + 1)),$((1 + i * 7 % 5))"
  done >>"$work/ratings.csv"
  expected='epoch 10: .*' check separate_processes fit "$work/ratings.csv" "$work/ratings.s3m"
  expected='[0-9.]*' check separate_processes predict "$work/ratings.s3m" 1 3 1
}

address() {
  # Without optimization: fast to build, with overflow checks.
  RUSTC_BOOTSTRAP=1 RUSTFLAGS="-Zsanitizer=address --cfg s3cmtf_test" CARGO_PROFILE_DEV_DEBUG=line-tables-only \
    CARGO_PROFILE_DEV_OPT_LEVEL=0 \
    cargo build --quiet --package s3cmtf --lib --target "$triple" --target-dir "$target/sanitize"
  # Detection of stack use after return needs one compiler runtime; here there are two.
  export ASAN_OPTIONS=allocator_may_return_null=1:detect_leaks=1:detect_stack_use_after_return=0
  # Unoptimized kernels with checks have stack frames of megabytes.
  export RUST_MIN_STACK=33554432
  export UBSAN_OPTIONS=print_stacktrace=1
  export S3CMTF_SANITIZER=1
  for source in example.c misuse.c struct_sizes.c one_call.c panic.c files.c workflow.c threads.c float_mode.c \
    separate_processes.c discover.c row_names.c cpp_layer.cpp; do
    # shellcheck disable=SC2086
    compile $source -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer \
      "$target/sanitize/$triple/debug/libs3cmtf.a" $system_libraries
  done
  compile reload.c -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer -lpthread -ldl -lm
  expected='prediction .*' check example
  check misuse
  check struct_sizes "$work"
  check panic
  application
  check reload "$target/sanitize/$triple/debug/libs3cmtf.so"
  check files "$work"
  check workflow "$work"
  check one_call "$work"
  check discover "$work"
  check row_names "$work"
  check threads $((32 * 1024 * 1024))
  check float_mode
  check cpp_layer "$work"
}

memcheck() {
  local shared=${SHARED:-$target/release/libs3cmtf.so}
  # A copy: a build may replace the library meanwhile.
  cp "$shared" "$work/libs3cmtf.so"
  ln -s libs3cmtf.so "$work/$(readelf -d "$shared" | sed -n 's/.*soname: \[\(.*\)\]/\1/p')"
  # Valgrind supports AVX2 but neither AVX-512 nor all floating-point modes.
  export S3CMTF_KERNEL=avx2
  grep -q avx2 /proc/cpuinfo || export S3CMTF_KERNEL=wide
  local tool="valgrind --quiet --error-exitcode=9 --leak-check=full --suppressions=c_tests/memcheck.supp
    --show-leak-kinds=definite,indirect,possible --errors-for-leak-kinds=definite,indirect,possible"
  for source in example.c misuse.c struct_sizes.c one_call.c files.c workflow.c threads.c separate_processes.c discover.c row_names.c \
    cpp_layer.cpp; do
    # shellcheck disable=SC2086
    compile $source -L"$work" -Wl,-rpath,"$work" -ls3cmtf $system_libraries
  done
  compile reload.c -lpthread -ldl -lm
  expected='prediction .*' check example
  check misuse
  check struct_sizes "$work"
  application
  check reload "$work/libs3cmtf.so"
  check files "$work"
  check workflow "$work"
  check one_call "$work"
  check discover "$work"
  check row_names "$work"
  check threads
  check cpp_layer "$work"
}

for what in "${@:-address}"; do
  case $what in
    address | memcheck) echo "-- $what" && "$what" ;;
    *) echo "unknown: $what" >&2 && exit 2 ;;
  esac
done
