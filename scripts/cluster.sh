#!/usr/bin/env bash
# Runs a three-node cluster of local processes, for trying things out.
#
#   scripts/cluster.sh up         build the binary, make a secret, start n1 n2 n3, wait until all are ready
#   scripts/cluster.sh status     a table: process, readiness, leader, applied index
#   scripts/cluster.sh kill N     kill -9 node N (1, 2 or 3)
#   scripts/cluster.sh restart N  start node N again (after stopping it if it runs)
#   scripts/cluster.sh down       stop all nodes in order; the data stays (down --wipe removes it)
#
# Everything lives in .cluster/ (or $ROLLCALL_CLUSTER_DIR): the binary, the secret, data and logs of each node.
# n1, n2, n3 listen on $ROLLCALL_CLUSTER_HTTP_PORT (8848) and $ROLLCALL_CLUSTER_PEER_PORT (7848) and the two
# ports after each; without the variables a cluster keeps those that it has. ROLLCALL_AUTH=true and other
# settings pass through.
set -euo pipefail
dir=${ROLLCALL_CLUSTER_DIR:-}
case $dir in '' | /*) ;; *) dir=$PWD/$dir ;; esac
cd "$(dirname "$0")/.."
dir=${dir:-.cluster}

die() { echo "cluster.sh: $*" >&2; exit 1; }
usage() { sed -n '2,13p' "$0" | cut -c3-; }
port() { # environment variable, default, kept value
  local want=${!1:-${3:-$2}}
  [[ $want =~ ^[1-9][0-9]{0,4}$ ]] && [ "$want" -le 65533 ] || die "$1=$want: must be a port from 1 to 65533"
  echo "$want"
}
kept_http='' kept_peer=''
if [ -f "$dir/ports" ]; then read -r kept_http kept_peer <"$dir/ports"; fi
http_base=$(port ROLLCALL_CLUSTER_HTTP_PORT 8848 "$kept_http")
peer_base=$(port ROLLCALL_CLUSTER_PEER_PORT 7848 "$kept_peer")
join=127.0.0.1:$peer_base,127.0.0.1:$((peer_base + 1)),127.0.0.1:$((peer_base + 2))

node_number() { [[ ${1:-} =~ ^[123]$ ]] || die "which node? give 1, 2 or 3, got '${1:-}'"; }
http_port() { echo $((http_base + $1 - 1)); }
pid_of() { cat "$dir/n$1.pid" 2>/dev/null || true; }
running() { local pid; pid=$(pid_of "$1"); [ -n "$pid" ] && kill -0 "$pid" 2>/dev/null && [ "$(ps -o comm= -p "$pid" 2>/dev/null)" = rollcall ]; }
ready() { "$dir/rollcall" health --addr "127.0.0.1:$(http_port "$1")" >/dev/null 2>&1; }

start_node() {
  local n=$1
  if running "$n"; then return; fi
  "$dir/rollcall" serve --node-id "n$n" --data-dir "$dir/n$n" \
    --http-addr "127.0.0.1:$(http_port "$n")" --peer-addr "127.0.0.1:$((peer_base + n - 1))" \
    --advertise "127.0.0.1:$((peer_base + n - 1))" --bootstrap-expect 3 --join "$join" \
    --cluster-secret-file "$dir/secret" >>"$dir/n$n.log" 2>&1 </dev/null &
  echo $! >"$dir/n$n.pid"
}

stop_node() { # $1 node, $2 signal
  local pid; pid=$(pid_of "$1")
  if running "$1"; then
    kill "-$2" "$pid"
    for _ in $(seq 1 150); do running "$1" || break; sleep 0.1; done
    if running "$1"; then echo "n$1 does not stop in 15 s: killed" >&2; kill -KILL "$pid"; fi
  fi
  rm -f "$dir/n$1.pid"
}

wait_ready() { # nodes
  local n left=30
  for n in "$@"; do
    until ready "$n"; do
      running "$n" || { echo; tail -n 3 "$dir/n$n.log" >&2; die "n$n ended at start; its log is $dir/n$n.log"; }
      [ $left -gt 0 ] || { echo; "$dir/rollcall" health --addr "127.0.0.1:$(http_port "$n")" || true; die "n$n is not ready after 30 s; its log is $dir/n$n.log"; }
      left=$((left - 1)); printf '.'; sleep 1
    done
  done
  echo
}

header() { # node, header name
  { exec 3<>"/dev/tcp/127.0.0.1/$(http_port "$1")"; } 2>/dev/null || return 0
  printf 'GET /nacos/v1/ns/instance/list?serviceName=status HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n' >&3
  timeout 2 cat <&3 | tr -d '\r' | awk -F': ' -v h="$2" 'tolower($1)==tolower(h){print $2; exit}'
  exec 3<&- 3>&-
}

up() {
  if [ "${kept_http:-$http_base} ${kept_peer:-$peer_base}" != "$http_base $peer_base" ]; then
    for n in 1 2 3; do stop_node $n TERM; done # all of them move
  fi
  mkdir -p "$dir"
  echo "$http_base $peer_base" >"$dir/ports"
  echo "building $dir/rollcall"
  go build -o "$dir/rollcall" ./cmd/rollcall
  if [ ! -f "$dir/secret" ]; then (umask 077; head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n' >"$dir/secret"); fi
  for n in 1 2 3; do start_node $n; done
  printf 'waiting for three ready nodes '
  wait_ready 1 2 3
  status
  local a=127.0.0.1:$(http_port 1) b=127.0.0.1:$(http_port 3)
  cat <<EOT

Try next (nobody sends beats for this instance: unhealthy after 15 s, gone after 30 s):
  curl -X POST 'http://$a/nacos/v1/ns/instance?serviceName=hello&ip=10.0.0.1&port=8080'
  curl 'http://$b/nacos/v1/ns/instance/list?serviceName=hello'
  scripts/cluster.sh kill 1 && curl 'http://$b/nacos/v1/ns/instance/list?serviceName=hello'
  scripts/cluster.sh restart 1; scripts/cluster.sh status; scripts/cluster.sh down
EOT
}

status() {
  local n state is leader index bad=0
  printf '%-5s %-8s %-16s %-10s %-7s %s\n' NODE PID HTTP STATE LEADER INDEX
  for n in 1 2 3; do
    leader=- index=-
    if ! running $n; then state=stopped; bad=1
    else
      if ready $n; then state=ready; else state=not-ready; bad=1; fi
      leader=$(header $n X-Rollcall-Leader); index=$(header $n X-Rollcall-Index)
    fi
    is=$(running $n && pid_of $n || echo -)
    printf '%-5s %-8s %-16s %-10s %-7s %s\n' "n$n" "$is" "127.0.0.1:$(http_port $n)" "$state" "${leader:--}" "${index:--}"
  done
  return $bad
}

restart() {
  [ -x "$dir/rollcall" ] || die "no cluster in $dir: scripts/cluster.sh up first"
  stop_node "$1" TERM; start_node "$1"; wait_ready "$1"; status || true
}

down() {
  local n
  for n in 1 2 3; do stop_node $n TERM; done
  if [ "${1:-}" = --wipe ]; then rm -rf "$dir"; echo "stopped, data removed"; return; fi
  echo "stopped; data and logs stay in $dir (scripts/cluster.sh up goes on with them)"
}

case "${1:-}" in
  up | status) [ $# -eq 1 ] || die "$1 takes no argument '$2'" ;;
  kill | restart) node_number "${2:-}"; [ $# -eq 2 ] || die "$1 takes one node, not also '$3'" ;;
  down) [[ $# -eq 1 || $# -eq 2 && $2 = --wipe ]] || die "down takes nothing or --wipe, got '$2'" ;;
esac
case "${1:-}" in
  up) up ;;
  status) status ;;
  kill) running "$2" || die "n$2 does not run"; stop_node "$2" KILL; echo "n$2 killed; next: scripts/cluster.sh status, scripts/cluster.sh restart $2" ;;
  restart) restart "$2" ;;
  down) down "${2:-}" ;;
  help | -h | --help) usage ;;
  '') usage; exit 2 ;;
  *) usage; die "unknown command '$1'" ;;
esac
