#!/bin/sh
# Installs Ropewalk: by apt if there is apt, otherwise the static program. Only files with a signature by the key in this
# script are installed.
set -eu
url='@URL@'

key() {
    cat <<'KEY'
@KEY@
KEY
}

fail() {
    echo "install.sh: $1" >&2
    exit 1
}

by_apt() {
    mkdir -p /etc/apt/keyrings
    key > /etc/apt/keyrings/ropewalk.asc
    chmod 0644 /etc/apt/keyrings/ropewalk.asc
    printf 'Types: deb\nURIs: %s/apt\nSuites: stable\nComponents: main\nSigned-By: /etc/apt/keyrings/ropewalk.asc\n' "$url" \
        > /etc/apt/sources.list.d/ropewalk.sources
    apt-get update
    apt-get install --yes ropewalk
}

fetch() {
    case $url in
        file://*) cp "${url#file://}/$1" "$2" ;;
        *) curl --fail --silent --show-error --location --output "$2" "$url/$1" ;;
    esac
}

by_archive() {
    for program in gpg gpgv tar sha256sum; do
        command -v "$program" > /dev/null || fail "$program is missing: it verifies what is installed"
    done
    case $(uname -m) in
        x86_64) target=x86_64-unknown-linux-musl ;;
        aarch64) target=aarch64-unknown-linux-musl ;;
        *) fail "no program for $(uname -m): docs/releases.md says how to build one" ;;
    esac
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    fetch SHA256SUMS "$folder/SHA256SUMS"
    fetch SHA256SUMS.asc "$folder/SHA256SUMS.asc"
    key | gpg --batch --quiet --dearmor > "$folder/key.gpg"
    gpgv --quiet --keyring "$folder/key.gpg" "$folder/SHA256SUMS.asc" "$folder/SHA256SUMS" || fail "SHA256SUMS: wrong signature"
    archive=$(sed -n "s/^[0-9a-f]*  \(ropewalk-.*-$target\.tar\.gz\)$/\1/p" "$folder/SHA256SUMS" | tail -n 1)
    [ -n "$archive" ] || fail "this release has no program for $target"
    fetch "$archive" "$folder/$archive"
    (cd "$folder" && grep -F "  $archive" SHA256SUMS | sha256sum --check --quiet) || fail "$archive: wrong checksum"
    tar --extract --gzip --file "$folder/$archive" --directory "$folder" ropewalk
    install -m 0755 "$folder/ropewalk" /usr/local/bin/ropewalk
    ropewalk --version
}

main() {
    [ "$(id -u)" = 0 ] || fail "it needs root"
    case ${1-} in
        '') if command -v apt-get > /dev/null; then by_apt; else by_archive; fi ;;
        --archive) by_archive ;;
        *) fail "usage: install.sh [--archive]" ;;
    esac
}

# The call is at the end, so that an incomplete script does nothing.
main "$@"
