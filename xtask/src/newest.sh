# Puts the newest Redis and Valkey that Debian has, testing or not, into the directory named as the
# argument: DIR/redis-server and DIR/valkey-server. Nothing is installed. The packages are unpacked
# below DIR, with the libraries that they were built for, and started by the loader among those; so
# an older Debian runs them as well. Needs no root.
set -eu
directory=$1 # absolute

# The mirror that this machine uses already.
mirror=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources \
    2>/dev/null | grep -v '^ *#' | grep -Eo '(https?|file)://[^ ]+/debian/?( |$)' | head -n 1)
keys=/usr/share/keyrings/debian-archive-keyring.gpg
if [ -z "$mirror" ] || [ ! -e "$keys" ]; then
    echo "this is no Debian: no Debian mirror in /etc/apt, or no $keys" >&2
    exit 1
fi

# Beside it first, so that a failure leaves what was there.
new=$directory.new
rm -rf "$new"
mkdir -p "$new/apt/lists/partial" "$new/apt/cache/archives/partial" "$new/packages" "$new/root"
cd "$new"
new=$PWD
for suite in sid experimental; do
    echo "deb [signed-by=$keys] $mirror $suite main"
done >apt/sources.list
: >apt/status

# apt as if on another machine, on which nothing is installed.
apt() {
    tool=$1
    shift
    "$tool" -qq \
        -o Dir::Etc::sourcelist="$new/apt/sources.list" -o Dir::Etc::sourceparts=- \
        -o Dir::State::lists="$new/apt/lists" -o Dir::State::status="$new/apt/status" \
        -o Dir::Cache="$new/apt/cache" -o APT::Sandbox::User= -o APT::Update::Error-Mode=any \
        -o Acquire::Languages=none -o Acquire::Retries=2 -o Acquire::http::Timeout=20 "$@"
}

apt apt-get update
# `apt-cache` says what each of these is built for, however Debian may name that next year.
libraries=$(apt apt-cache -o APT::Default-Release=experimental depends --recurse --no-recommends \
    --no-suggests --no-conflicts --no-breaks --no-replaces --no-enhances redis-tools valkey-tools |
    grep -E '^(lib|zlib|lua-)' | sort -u)
(
    cd packages
    for server in redis valkey; do
        # The program is in the package of the tools. What experimental does not have, sid has.
        apt apt-get download -t experimental "$server-server" "$server-tools" ||
            apt apt-get download "$server-server" "$server-tools"
    done
    apt apt-get download $libraries
)
for package in packages/*.deb; do
    dpkg-deb --extract "$package" root
done

library_path=$(dirname "$(find root -name libc.so.6 | head -n 1)")
loader=$(find root -name 'ld-linux*.so.*' -o -name 'ld64.so.*' | head -n 1)
for server in redis-server valkey-server; do
    cat >"$server" <<END
#!/bin/sh
here=\${0%/*}
exec "\$here/$loader" --library-path "\$here/$library_path" "\$here/root/usr/bin/$server" "\$@"
END
    chmod +x "$server"
    "./$server" --version
done
rm -rf apt packages
cd /
rm -rf "$directory"
mv "$new" "$directory"
