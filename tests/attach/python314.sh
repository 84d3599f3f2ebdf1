#!/bin/sh
# Makes a CPython 3.14 for test_remote.py where the system has none (Debian and Ubuntu, as root):
#   sh tests/attach/python314.sh DIR && FLAME_PYTHON314=DIR/usr/here/python3.14 pytest tests/attach
# Debian's own, from a tree of its own (290 MB), with the C library that it needs. Nothing is
# installed outside DIR.
set -eu

[ $# -eq 1 ] || { echo "usage: $0 DIR" >&2; exit 2; }
for tool in debootstrap patchelf; do
    command -v "$tool" >/dev/null || { echo "$0: needs $tool" >&2; exit 1; }
done
mkdir -p "$1"
dir=$(cd "$1" && pwd)

debootstrap --variant=minbase --include=python3.14 sid "$dir" >&2
loader=$(find "$dir/usr/lib64" "$dir/usr/lib" -name "ld-linux-*" 2>/dev/null | head -n 1)
libraries=$(dirname "$(find "$dir/usr/lib" -name libc.so.6 | head -n 1)")

# A program of its own name in a folder of its own: it is found in /proc by that, and finds its
# modules from there.
mkdir -p "$dir/usr/here"
cp -L "$dir/usr/bin/python3.14" "$dir/usr/here/python3.14"
patchelf --set-interpreter "$loader" --force-rpath --set-rpath "$libraries" \
    "$dir/usr/here/python3.14"
"$dir/usr/here/python3.14" -c 'import ctypes, sys; sys.exit(not sys.is_remote_debug_enabled())'
echo "FLAME_PYTHON314=$dir/usr/here/python3.14"
