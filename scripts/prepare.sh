# Read by ./run and ./check: makes the checkout runnable, doing only what is not done yet.
# Ends the script with a plain sentence when something is missing that it cannot bring along.

fail() {
  printf '%s: %s\n' "$0" "$1" >&2
  exit 1
}

require_machine() {
  [ "$(uname -s)" = Linux ] || fail 'this runs on Linux only'
  [ "$(id -u)" = 0 ] || fail "containers, mounts and cgroups need root; start it as: sudo $0"
  local hint=''
  [ -z "${SUDO_USER:-}" ] || hint="; if it is installed for ${SUDO_USER} only: sudo env \"PATH=\$PATH\" $0"
  command -v node >/dev/null || fail "Node.js 20 or newer is needed and was not found${hint}"
  command -v npm >/dev/null || fail "npm is needed and was not found${hint}"
  local major
  major=$(node -p 'process.versions.node.split(".")[0]')
  [ "$major" -ge 20 ] || fail "Node.js 20 or newer is needed; $(command -v node) is $(node --version)${hint}"
}

# Whoever owns the checkout keeps owning what is made in it, also under sudo.
give_to_owner() {
  [ "$(stat -c %u .)" = 0 ] || chown -R --reference=. "$@"
}

# The stamp is the last thing written: an interrupted installation is done again.
install_npm_packages() {
  local lock stamp=node_modules/.installed-lock
  lock=$(sha256sum <package-lock.json)
  if [ -e "$stamp" ] && [ "$(cat "$stamp")" = "$lock" ] && node_modules/.bin/node --version >/dev/null 2>&1; then
    return
  fi
  echo 'installing the npm packages of package-lock.json' >&2
  npm ci --no-progress --loglevel=error >&2 || fail 'npm ci failed, see above'
  node_modules/.bin/node --version >/dev/null ||
    fail "the pinned Node.js of the npm packages does not run here ($(uname -m)); x86_64 and aarch64 with glibc are supported"
  printf '%s\n' "$lock" >"$stamp"
  give_to_owner node_modules
}

build_when_changed() {
  local changed
  if [ -x dist/kubelet ]; then
    changed=$(find src scripts/build.ts scripts/empty-module.cjs package.json package-lock.json -newer dist/kubelet -print -quit)
    [ -n "$changed" ] || return 0
  fi
  node_modules/.bin/node scripts/build.ts >&2 || fail 'the build failed, see above'
  give_to_owner dist
}

# $1: a function to run; one at a time for this checkout, whoever else is at it.
alone() {
  mkdir -p .cache
  exec 9>.cache/prepare.lock
  flock -w 900 9 || fail 'another run has been preparing this checkout for 15 minutes; end it and try again'
  "$@"
  exec 9>&-
}
