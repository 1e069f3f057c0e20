#!/usr/bin/env bash
# Unpacks Julia 1.5.3 of Debian 11 with its libraries under a prefix, for systems whose own packages have no Julia.
#
#   bindings/julia/get-julia.sh PREFIX
#
# PREFIX/bin/julia starts it; nothing is installed outside the prefix. Does nothing if it is already there. The packages come
# from the Debian mirror of the apt configuration, else from deb.debian.org or archive.debian.org. The signature of the release,
# the hash of its index and the hashes of all packages are verified.
set -euo pipefail
[ $# -eq 1 ] || { sed -n '2,8s/^# \{0,1\}//p' "$0" >&2; exit 2; }
release=bullseye
mkdir -p "$1"
prefix=$(cd "$1" && pwd)
julia=$prefix/bin/julia
if [ -x "$julia" ] && "$julia" --startup-file=no -e 'exit(VERSION >= v"1.5" ? 0 : 1)' 2>/dev/null; then
  echo "Julia is in $prefix" && exit 0
fi
fail() { echo "get-julia.sh: $*" >&2 && exit 1; }
for tool in apt-get dpkg dpkg-deb gpgv xz; do
  command -v "$tool" >/dev/null || fail "$tool is missing; this script needs Debian or a system derived from it"
done
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
[ -e "$keyring" ] || fail "$keyring is missing; it is in the package debian-archive-keyring"
architecture=$(dpkg --print-architecture)
downloads=$prefix/downloads
mkdir -p "$downloads"

# Downloads MIRROR-URL to FILE, with apt's own settings of proxies and certificates; the third argument is a hash or empty.
download() {
  /usr/lib/apt/apt-helper -qq download-file "$1" "$2.part" ${3:+"SHA256:$3"} >/dev/null 2>"$downloads/log" || return 1
  mv "$2.part" "$2"
}
has_hash() { [ -e "$1" ] && echo "$2  $1" | sha256sum --check --status; }

# The release file of the first mirror that still has this release.
mirror=
for candidate in $(apt-get indextargets --format '$(LABEL) $(REPO_URI)' 2>/dev/null | sed -n 's/^Debian //p' | sort -u) \
  http://deb.debian.org/debian/ http://archive.debian.org/debian/; do
  if download "${candidate%/}/dists/$release/InRelease" "$downloads/InRelease"; then
    mirror=${candidate%/} && break
  fi
done
[ -n "$mirror" ] || fail "no mirror has Debian's release $release: $(cat "$downloads/log")"
gpgv --quiet --keyring "$keyring" "$downloads/InRelease" 2>"$downloads/log" || fail "bad signature: $(cat "$downloads/log")"

index=main/binary-$architecture/Packages.xz
# The section SHA256 is the last of the file; its hashes have 64 digits.
hash=$(awk -v index_file="$index" '$3 == index_file && length($1) == 64 { print $1 }' "$downloads/InRelease")
[ -n "$hash" ] || fail "Debian's release $release has no packages for $architecture"
has_hash "$downloads/Packages.xz" "$hash" || download "$mirror/dists/$release/$index" "$downloads/Packages.xz" "$hash" ||
  fail "cannot download the index of packages: $(cat "$downloads/log")"

# Julia and all packages it depends on: NAME FILE HASH. The C and C++ runtimes are those of the system, which are newer.
packages=$(xz --decompress --stdout "$downloads/Packages.xz" | awk -v wanted=julia \
  -v provided=" libc6 libgcc-s1 libstdc++6 gcc-10-base libcrypt1 debconf debconf-2.0 dpkg " '
  /^Package: / { name = $2 }
  /^Filename: / { file[name] = $2 }
  /^SHA256: / { hash[name] = $2 }
  /^(Pre-)?Depends: / { sub(/^[^:]*: /, ""); depends[name] = depends[name] "," $0 }
  END {
    count = split(wanted, queue, " ")
    for (i = 1; i <= count; i++) seen[queue[i]] = 1
    for (i = 1; i <= count; i++) {
      if (!(queue[i] in file)) continue
      print queue[i], file[queue[i]], hash[queue[i]]
      parts = split(depends[queue[i]], part, ",")
      for (p = 1; p <= parts; p++) {
        split(part[p], word, /[ :(|]+/)
        next_name = word[1] == "" ? word[2] : word[1]
        if (next_name == "" || next_name in seen || index(provided, " " next_name " ")) continue
        seen[next_name] = 1
        queue[++count] = next_name
      }
    }
  }')
[ -n "$packages" ] || fail "the index of packages has no Julia"
echo "$(wc -l <<<"$packages") packages of Debian's release $release"
while read -r name file hash; do
  archive=$downloads/$name.deb
  has_hash "$archive" "$hash" || download "$mirror/$file" "$archive" "$hash" || fail "cannot download $file: $(cat "$downloads/log")"
  dpkg-deb -x "$archive" "$prefix/packages"
done <<<"$packages"

triplet=$(basename "$(dirname "$(find "$prefix/packages/usr/lib" -name 'libjulia.so.1' | head -n 1)")")
mkdir -p "$prefix/bin"
cat >"$julia" <<END
#!/bin/sh
packages=\$(cd "\$(dirname "\$0")/../packages" && pwd)
libraries=\$packages/usr/lib/$triplet
export LD_LIBRARY_PATH="\$libraries/julia:\$libraries:\$packages/lib/$triplet\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}"
export JULIA_BINDIR="\$packages/usr/bin"
exec "\$packages/usr/bin/julia" "\$@"
END
chmod +x "$julia"
version=$("$julia" --startup-file=no -e 'print(VERSION)') || fail "Julia does not start"
rm -r "$downloads"
echo "Julia $version is in $prefix"
