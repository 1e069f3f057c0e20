#!/usr/bin/env bash
# Installs the library for C and C++ under a prefix: headers, shared and static library, files for pkg-config and CMake; and the
# command-line program with its man pages and shell completions.
#
#   packaging/install.sh PREFIX
#
# DESTDIR is prepended to the prefix. LIBDIR (default: lib) is the folder of libraries under the prefix, such as lib64 or
# lib/x86_64-linux-gnu. A release build that exists is used; S3CMTF_BUILT names the folder of another build.
set -euo pipefail
[ $# -eq 1 ] || { sed -n '2,8s/^# \{0,1\}//p' "$0" >&2; exit 2; }
root=$(cd "$(dirname "$0")/.." && pwd)
libdir=${LIBDIR:-lib}
case /$libdir/ in
  //* | */../* | */./* | *//) echo "LIBDIR is $libdir; it must be a folder under the prefix, such as lib64" >&2 && exit 2 ;;
esac
# Relative path from that folder to the prefix.
up=$(sed 's|[^/]\{1,\}|..|g' <<<"$libdir")
to=${DESTDIR:-}$1
version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$root/Cargo.toml" | head -n 1)
# As in build.rs: while the major version is 0, versions with the same minor version are compatible.
case $version in
  0.*) compatible=${version%.*} ;;
  *) compatible=${version%%.*} ;;
esac

built=${S3CMTF_BUILT:-}
if [ -z "$built" ]; then
  # Like `cargo build --release` in the root: other packages or features would compile the library a second time.
  cargo build --manifest-path "$root/Cargo.toml" --release
  built=$(cargo metadata --manifest-path "$root/Cargo.toml" --format-version 1 --no-deps |
    sed 's/.*"target_directory":"\([^"]*\)".*/\1/')
  # When cross-compiling, cargo uses a subfolder named after the target.
  built=$built/${CARGO_BUILD_TARGET:+$CARGO_BUILD_TARGET/}release
fi

mkdir -p "$to/include" "$to/$libdir/pkgconfig" "$to/$libdir/cmake/s3cmtf"
install -m 644 "$root"/include/s3cmtf.h "$root"/include/s3cmtf.hpp "$to/include"
shared=$to/$libdir/libs3cmtf.so.$version
cc=${CC:-cc}
if command -v "$cc" >/dev/null; then
  # Linked again, from the static library, because rustc has no symbol versions.
  "$cc" -shared -o "$shared" -Wl,--whole-archive "$built/libs3cmtf.a" -Wl,--no-whole-archive \
    "-Wl,--version-script=$root/packaging/s3cmtf.map" "-Wl,-soname,libs3cmtf.so.$compatible" \
    -Wl,--gc-sections -Wl,-z,relro -Wl,-z,now -lgcc_s -lm -lpthread -ldl -lc
else
  install -m 755 "$built/libs3cmtf.so" "$shared"
fi
install -m 644 "$built/libs3cmtf.a" "$to/$libdir/libs3cmtf.a"
if command -v strip >/dev/null; then
  strip --strip-unneeded "$shared"
  strip --strip-debug "$to/$libdir/libs3cmtf.a"
fi
ln -sf "libs3cmtf.so.$version" "$to/$libdir/libs3cmtf.so.$compatible"
ln -sf "libs3cmtf.so.$compatible" "$to/$libdir/libs3cmtf.so"

fill() {
  sed -e "s|@VERSION@|$version|g" -e "s|@COMPATIBLE@|$compatible|g" -e "s|@LIBDIR@|$libdir|g" -e "s|@UP@|$up|g" "$root/packaging/$1" >"$2"
}
fill s3cmtf.pc.in "$to/$libdir/pkgconfig/s3cmtf.pc"
fill s3cmtfConfig.cmake.in "$to/$libdir/cmake/s3cmtf/s3cmtfConfig.cmake"
fill s3cmtfConfigVersion.cmake.in "$to/$libdir/cmake/s3cmtf/s3cmtfConfigVersion.cmake"
# The command-line program with its man pages and completions, if it is built beside the library.
if [ -x "$built/s3cmtf" ]; then
  install -D -m 755 "$built/s3cmtf" "$to/bin/s3cmtf"
  "$built/s3cmtf" man -o "$to/share/man/man1" >/dev/null
  mkdir -p "$to/share/bash-completion/completions" "$to/share/zsh/site-functions" "$to/share/fish/vendor_completions.d"
  "$built/s3cmtf" completions bash >"$to/share/bash-completion/completions/s3cmtf"
  "$built/s3cmtf" completions zsh >"$to/share/zsh/site-functions/_s3cmtf"
  "$built/s3cmtf" completions fish >"$to/share/fish/vendor_completions.d/s3cmtf.fish"
fi
echo "s3cmtf $version is in $to"
