# A sketch of a NixOS module: it parses, and nobody has built a system with it. There is no package in nixpkgs; `package` is one
# of your own that has `bin/ropewalk-kernel`: the program of `cargo build --profile loader --no-default-features --features kernel`
# under that name.
{ config, lib, pkgs, ... }:

let
  cfg = config.services.ropewalk-kernel;
  program = "${cfg.package}/bin/ropewalk-kernel";
  names = lib.escapeShellArgs cfg.programs;
in
{
  options.services.ropewalk-kernel = {
    enable = lib.mkEnableOption "coupled congestion control for MPTCP, by eBPF";
    package = lib.mkOption {
      type = lib.types.package;
      description = "The package with bin/ropewalk-kernel.";
    };
    programs = lib.mkOption {
      type = lib.types.nonEmptyListOf lib.types.str;
      default = [ "lia" ];
      description = "What is loaded at boot, as `ropewalk-kernel list` names it.";
    };
    default = lib.mkOption {
      type = lib.types.nullOr lib.types.str;
      default = null;
      example = "rw_lia";
      description = "The congestion control of new sockets in the first network namespace.";
    };
    endpoints = lib.mkOption {
      type = lib.types.listOf lib.types.str;
      default = [ ];
      example = [ "192.0.2.10 dev eth0 subflow" ];
      description = "MPTCP endpoints, as `ip mptcp endpoint add` takes them.";
    };
  };

  config = lib.mkIf cfg.enable {
    boot.kernel.sysctl."net.mptcp.enabled" = 1;
    environment.systemPackages = [ cfg.package ];
    systemd.services.ropewalk-kernel = {
      description = "Congestion control programs of Ropewalk";
      wantedBy = [ "multi-user.target" ];
      wants = [ "network-online.target" ];
      after = [ "network-online.target" ];
      path = [ pkgs.iproute2 pkgs.procps ];
      script = ''
        ${program} load --ensure ${names}
        ${lib.optionalString (cfg.default != null) "sysctl net.ipv4.tcp_congestion_control=${cfg.default}"}
        ip mptcp limits set subflows 2 add_addr_accepted 2
        ${lib.concatMapStringsSep "\n" (endpoint: "ip mptcp endpoint add ${endpoint} || true") cfg.endpoints}
      '';
      preStop = "${program} unload ${names} || true";
      serviceConfig = {
        Type = "oneshot";
        RemainAfterExit = true;
      };
    };
  };
}
