#!/bin/sh
# Unpacks Debian packages and all that they need into a tree of its own:
#   sh tests/support/debian_tree.sh DIR SUITE MACHINE PACKAGE...     MACHINE: amd64, arm64
# Nothing is installed, and nothing written outside DIR: apt keeps its lists there, too.
set -eu

[ $# -ge 4 ] || { echo "usage: $0 DIR SUITE MACHINE PACKAGE..." >&2; exit 2; }
for tool in apt-get dpkg; do
    command -v "$tool" >/dev/null || { echo "$0: needs $tool" >&2; exit 1; }
done
mkdir -p "$1"
dir=$(cd "$1" && pwd)
suite=$2
machine=$3
shift 3
apt=$dir/apt
keys=/usr/share/keyrings/debian-archive-keyring.gpg

mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$apt/parts"
: >"$apt/status"
echo "deb [signed-by=$keys] http://deb.debian.org/debian $suite main" >"$apt/sources.list"
TMPDIR=$apt
export TMPDIR
get() {
    apt-get -qq -o Dir::State="$apt" -o Dir::State::Lists="$apt/lists" \
        -o Dir::State::status="$apt/status" -o Dir::Cache="$apt/cache" \
        -o Dir::Etc::SourceList="$apt/sources.list" -o Dir::Etc::SourceParts="$apt/parts" \
        -o Dir::Etc::PreferencesParts="$apt/parts" -o APT::Install-Recommends=false \
        -o APT::Architecture="$machine" -o APT::Architectures="$machine" \
        -o APT::Sandbox::User="$(id -un)" "$@" >&2
}
get update
get install -y --download-only "$@"
for package in "$apt"/cache/archives/*.deb; do
    dpkg -x "$package" "$dir"
done
rm -rf "$apt"
