#!/bin/sh
# Makes a CPython for test_remote_exec.py where the system has none (Debian and Ubuntu):
#   sh tests/attach/python314.sh DIR [3.14|3.15]
#   FLAME_PYTHON314=DIR/usr/here/python3.14 pytest tests/attach
# Debian's own, from a tree of its own (70 MB), with the C library that it needs. Nothing is
# installed, and nothing written outside DIR: apt keeps its lists there, too.
set -eu

[ $# -ge 1 ] || { echo "usage: $0 DIR [VERSION]" >&2; exit 2; }
python=python${2:-3.14}
for tool in apt-get dpkg patchelf; do
    command -v "$tool" >/dev/null || { echo "$0: needs $tool" >&2; exit 1; }
done
mkdir -p "$1"
dir=$(cd "$1" && pwd)
apt=$dir/apt
keys=/usr/share/keyrings/debian-archive-keyring.gpg

mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$apt/parts"
: >"$apt/status"
echo "deb [signed-by=$keys] http://deb.debian.org/debian sid main" >"$apt/sources.list"
TMPDIR=$apt
export TMPDIR
get() {
    apt-get -qq -o Dir::State="$apt" -o Dir::State::Lists="$apt/lists" \
        -o Dir::State::status="$apt/status" -o Dir::Cache="$apt/cache" \
        -o Dir::Etc::SourceList="$apt/sources.list" -o Dir::Etc::SourceParts="$apt/parts" \
        -o Dir::Etc::PreferencesParts="$apt/parts" -o APT::Install-Recommends=false \
        -o APT::Sandbox::User="$(id -un)" "$@" >&2
}
get update
get install -y --download-only "$python-minimal" "lib$python-stdlib"
for package in "$apt"/cache/archives/*.deb; do
    dpkg -x "$package" "$dir"
done

# A program of its own name in a folder of its own: it finds its modules from there.
libraries=$(dirname "$(find "$dir/usr/lib" -name libc.so.6 | head -n 1)")
loader=$(find "$libraries" -name "ld-linux*" | head -n 1)
mkdir -p "$dir/usr/here"
cp -L "$dir/usr/bin/$python" "$dir/usr/here/$python"
patchelf --set-interpreter "$loader" --force-rpath --set-rpath "$libraries" "$dir/usr/here/$python"
"$dir/usr/here/$python" -c 'import ctypes, sys; sys.exit(not sys.is_remote_debug_enabled())'
rm -rf "$apt"
echo "FLAME_PYTHON$(echo "${2:-3.14}" | tr -d .)=$dir/usr/here/$python"
