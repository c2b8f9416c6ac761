# Unpacks the newest servers in Debian into a directory. `newest.sh DIR redis`: Redis and Valkey, from
# sid or experimental, as DIR/redis-server and DIR/valkey-server. `newest.sh DIR sql`: MySQL and
# PostgreSQL, as DIR/mysqld, DIR/postgres and DIR/initdb. Installs nothing and needs no root. The
# packages are unpacked together with the libraries that they were built for, and started by the
# loader among these, so they also run on an older Debian.
set -eu
directory=$1 # absolute
group=$2

# The mirror that this machine uses.
mirror=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources \
    2>/dev/null | grep -v '^ *#' | grep -Eo '(https?|file)://[^ ]+/debian/?( |$)' | head -n 1)
keys=/usr/share/keyrings/debian-archive-keyring.gpg
if [ -z "$mirror" ] || [ ! -e "$keys" ]; then
    echo "this system is not Debian: no Debian mirror in /etc/apt, or no $keys" >&2
    exit 1
fi
case $group in
redis) suites='sid experimental' ;;
sql) suites=sid ;; # Their versions in experimental are not released yet.
esac

# Work in another directory first, so that a failure keeps the old servers.
new=$directory.new
rm -rf "$new"
mkdir -p "$new/apt/lists/partial" "$new/apt/cache/archives/partial" "$new/packages" "$new/root"
cd "$new"
new=$PWD
for suite in $suites; do
    echo "deb [signed-by=$keys] $mirror $suite main"
done >apt/sources.list
: >apt/status

# Runs apt as on a machine on which nothing is installed.
apt() {
    tool=$1
    shift
    "$tool" -qq \
        -o Dir::Etc::sourcelist="$new/apt/sources.list" -o Dir::Etc::sourceparts=- \
        -o Dir::State::lists="$new/apt/lists" -o Dir::State::status="$new/apt/status" \
        -o Dir::Cache="$new/apt/cache" -o APT::Sandbox::User= -o APT::Update::Error-Mode=any \
        -o Acquire::Languages=none -o Acquire::Retries=2 -o Acquire::http::Timeout=20 "$@"
}

# Prints the libraries that these packages depend on. Their names change with their versions, so they
# are not listed here.
libraries_of() {
    apt apt-cache depends --recurse --no-recommends --no-suggests --no-conflicts --no-breaks \
        --no-replaces --no-enhances "$@" | grep -E '^(lib|zlib|lua-)' | grep -v perl | sort -u
}

# Writes an executable script from stdin, which may use `$here`, the directory that it is in.
program() {
    {
        echo '#!/bin/sh'
        echo 'here=$(dirname "$(readlink -f "$0")")'
        cat
    } >"$1"
    chmod +x "$1"
}

apt apt-get update
case $group in
redis)
    # The programs are in the `-tools` packages.
    libraries=$(libraries_of -o APT::Default-Release=experimental redis-tools valkey-tools)
    (
        cd packages
        for server in redis valkey; do
            # sid has the packages that experimental lacks.
            apt apt-get download -t experimental "$server-server" "$server-tools" ||
                apt apt-get download "$server-server" "$server-tools"
        done
    )
    ;;
sql)
    # The package `postgresql` is empty, and depends on the newest version.
    postgres=$(apt apt-cache depends postgresql | grep -Eo 'postgresql-[0-9]+' | head -n 1)
    libraries=$(libraries_of mysql-server-core "$postgres")
    (cd packages && apt apt-get download mysql-server-core "$postgres")
    ;;
esac
(cd packages && apt apt-get download $libraries)
for package in packages/*.deb; do
    dpkg-deb --extract "$package" root
done

library_path=$(dirname "$(find root -name libc.so.6 | head -n 1)")
loader=$(find root -name 'ld-linux*.so.*' -o -name 'ld64.so.*' | head -n 1)
case $group in
redis)
    for server in redis-server valkey-server; do
        program "$server" <<END
exec "\$here/$loader" --library-path "\$here/$library_path" "\$here/root/usr/bin/$server" "\$@"
END
    done
    programs='redis-server valkey-server'
    ;;
sql)
    # The caller's arguments come first: `--no-defaults` only counts there.
    program mysqld <<END
root=\$here/root
exec "\$here/$loader" --library-path "\$here/$library_path:\$root/usr/lib/mysql/private" \\
    "\$root/usr/sbin/mysqld" "\$@" --lc-messages-dir="\$root/usr/share/mysql" \\
    --plugin-dir="\$root/usr/lib/mysql/plugin" --character-sets-dir="\$root/usr/share/mysql/charsets" \\
    --secure-file-priv=
END
    # Each of its programs finds the others and its files relative to its own path.
    version=${postgres#postgresql-}
    for server in postgres initdb; do
        real=root/usr/lib/postgresql/$version/bin/$server
        mv "$real" "$real.real"
        up=../../../../../..
        program "$real" <<END
exec "\$here/$up/$loader" --library-path "\$here/$up/$library_path:\$here/../lib" \\
    --argv0 "\$here/$server" "\$here/$server.real" "\$@"
END
        ln -s "$real" "$server"
    done
    programs='mysqld postgres initdb'
    ;;
esac
for program in $programs; do
    "./$program" --version
done
rm -rf apt packages
cd /
rm -rf "$directory"
mv "$new" "$directory"
