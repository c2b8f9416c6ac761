# Installs the packages named as arguments; runs as root. None of them starts a server: the tests
# start their own.
set -eu
export DEBIAN_FRONTEND=noninteractive

# A package asks in two ways whether it may start its server: by the runlevel, and by a policy.
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

# A fresh machine has no package lists, and an old one has stale ones.
install "$@" || { apt-get update >&2 && install "$@"; }
