# Installs the packages given as arguments; runs as root. No package starts its server: the tests
# start their own.
set -eu
export DEBIAN_FRONTEND=noninteractive

# Packages check in two ways whether to start their server: the runlevel, and a policy script.
export RUNLEVEL=1
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
    trap 'rm -f "$policy"' EXIT
    trap 'exit 1' INT TERM HUP
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
fi

install() {
    apt-get install --yes --no-install-recommends --option DPkg::Lock::Timeout=120 \
        -- "$@" </dev/null >&2
}

# A fresh machine has no package lists, and those of an old one may be stale.
install "$@" || { apt-get update >&2 && install "$@"; }
