#!/bin/sh
# Makes a CPython for test_remote_exec.py where the system has none (Debian and Ubuntu):
#   sh tests/attach/python314.sh DIR [3.14|3.15]
#   FLAME_PYTHON314=DIR/usr/here/python3.14 pytest tests/attach
# Debian's own, from a tree of its own (70 MB), with the C library that it needs. Nothing is
# installed, and nothing written outside DIR.
set -eu

[ $# -ge 1 ] || { echo "usage: $0 DIR [VERSION]" >&2; exit 2; }
python=python${2:-3.14}
command -v patchelf >/dev/null || { echo "$0: needs patchelf" >&2; exit 1; }
sh "$(dirname "$0")/../support/debian_tree.sh" "$1" sid "$(dpkg --print-architecture)" \
    "$python-minimal" "lib$python-stdlib"
dir=$(cd "$1" && pwd)

# A program of its own name in a folder of its own: it finds its modules from there.
libraries=$(dirname "$(find "$dir/usr/lib" -name libc.so.6 | head -n 1)")
loader=$(find "$libraries" -name "ld-linux*" | head -n 1)
mkdir -p "$dir/usr/here"
cp -L "$dir/usr/bin/$python" "$dir/usr/here/$python"
patchelf --set-interpreter "$loader" --force-rpath --set-rpath "$libraries" "$dir/usr/here/$python"
"$dir/usr/here/$python" -c 'import ctypes, sys; sys.exit(not sys.is_remote_debug_enabled())'
echo "FLAME_PYTHON$(echo "${2:-3.14}" | tr -d .)=$dir/usr/here/$python"
