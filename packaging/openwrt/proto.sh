#!/bin/sh
# netifd's protocol `ropewalk`: a tunnel is an interface of /etc/config/network.
#
#	config interface 'rw0'
#		option proto 'ropewalk'
#		option private_key '...'
#		list addresses '10.77.0.2/24'
#
#	config ropewalk_rw0
#		option public_key '...'
#		option endpoint '203.0.113.1'
#		list allowed_ips '0.0.0.0/0'
#
# The configuration is written in memory, and the daemon runs as the interface's command: netifd starts it again.

[ -n "$INCLUDE_ONLY" ] || {
    . /lib/functions.sh
    . ../netifd-proto.sh
    init_proto "$@"
}

# Overridden by tests.
ROPEWALK=${ROPEWALK:-/usr/bin/ropewalk}
ROPEWALK_FOLDER=${ROPEWALK_FOLDER:-/var/run/ropewalk-netifd}

proto_ropewalk_init_config() {
    proto_config_add_string private_key
    proto_config_add_array 'addresses:list(cidr)'
    proto_config_add_int listen_port
    proto_config_add_int mtu
    proto_config_add_string uplinks
    proto_config_add_string routing
    proto_config_add_string relay
    proto_config_add_string scheduler
    # shellcheck disable=SC2034 # netifd reads them
    no_device=1 available=1
}

# A TOML string of a value (TOML 1.0.0, "String"); a line break ends the option.
ropewalk_quoted() {
    printf '"%s"' "$(printf '%s' "$1" | tr -d '\000-\037' | sed 's/[\\"]/\\&/g')"
}

ropewalk_string() { # KEY VALUE: nothing without a value
    [ -z "$2" ] || printf '%s = %s\n' "$1" "$(ropewalk_quoted "$2")"
}

ropewalk_list() { # KEY VALUE...
    key=$1
    shift
    [ $# -gt 0 ] || return 0
    list=
    for value; do
        list="$list${list:+, }$(ropewalk_quoted "$value")"
    done
    printf '%s = [%s]\n' "$key" "$list"
}

ropewalk_number() { # KEY VALUE: nothing without a value of digits
    case $2 in
        '' | *[!0-9]*) ;;
        *) printf '%s = %s\n' "$1" "$2" ;;
    esac
}

ropewalk_peer() { # SECTION
    config_get_bool disabled "$1" disabled 0
    [ "$disabled" = 0 ] || return 0
    printf '\n[[peer]]\n'
    for option in name public_key preshared_key; do
        config_get value "$1" "$option"
        ropewalk_string "$(echo "$option" | tr _ -)" "$value"
    done
    for option in endpoint allowed_ips; do
        config_get values "$1" "$option"
        # shellcheck disable=SC2086 # a list of uci
        ropewalk_list "$(echo "$option" | tr _ -)" $values
    done
}

ropewalk_path() { # SECTION
    printf '\n[[path]]\n'
    config_get network "$1" network
    config_get interface "$1" interface
    [ -z "$network" ] || network_get_device interface "$network"
    ropewalk_string interface "${interface:-$network}"
    for option in metered secondary backup; do
        config_get_bool value "$1" "$option" 0
        [ "$value" = 0 ] || printf '%s = true\n' "$option"
    done
    for option in quota rate; do
        config_get value "$1" "$option"
        ropewalk_string "$option" "$value"
    done
}

# Prints the configuration of an interface.
ropewalk_config() { # INTERFACE
    json_get_vars private_key listen_port mtu uplinks routing relay scheduler
    json_get_values addresses addresses
    printf '# Of /etc/config/network: changes are lost.\n[interface]\n'
    ropewalk_string name "$1"
    ropewalk_string private-key "$private_key"
    # shellcheck disable=SC2086 # a list of uci
    ropewalk_list address $addresses
    ropewalk_number listen-port "$listen_port"
    ropewalk_number mtu "$mtu"
    ropewalk_string uplinks "$uplinks"
    ropewalk_string routing "$routing"
    config_load network
    config_foreach ropewalk_peer "ropewalk_$1"
    config_foreach ropewalk_path "ropewalk_path_$1"
    printf '\n[tunnel]\n'
    ropewalk_string relay "$relay"
    ropewalk_string scheduler "$scheduler"
}

proto_ropewalk_setup() {
    local config="$1" file="$ROPEWALK_FOLDER/$1.toml" errors address
    mkdir -p "$ROPEWALK_FOLDER"
    chmod 0700 "$ROPEWALK_FOLDER"
    (umask 077 && ropewalk_config "$config" > "$file")
    if ! errors=$("$ROPEWALK" check "$file" 2>&1 > /dev/null); then
        logger -t "ropewalk-$config" -p daemon.err "$errors"
        proto_notify_error "$config" INVALID_CONFIGURATION
        proto_block_restart "$config"
        return 1
    fi
    proto_run_command "$config" "$ROPEWALK" up "$file"
    # The daemon makes the device, with its addresses and routes.
    for _ in $(seq 50); do
        [ ! -e "/sys/class/net/$config" ] || break
        sleep 1
    done
    proto_init_update "$config" 1
    json_get_values addresses addresses
    for address in $addresses; do
        case $address in
            *:*) proto_add_ipv6_address "${address%/*}" "${address#*/}" ;;
            *) proto_add_ipv4_address "${address%/*}" "${address#*/}" ;;
        esac
    done
    proto_send_update "$config"
}

proto_ropewalk_teardown() {
    proto_kill_command "$1"
    rm -f "$ROPEWALK_FOLDER/$1.toml"
}

[ -n "$INCLUDE_ONLY" ] || add_protocol ropewalk
