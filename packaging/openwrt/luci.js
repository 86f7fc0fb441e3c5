'use strict';
'require form';
'require network';

// LuCI's form of the protocol `ropewalk` (Network, Interfaces). Its options are those of /lib/netifd/proto/ropewalk.sh.

network.registerErrorCode('INVALID_CONFIGURATION', _('The configuration is invalid: the system log says why'));

function keyOf(option, description) {
	option.description = description;
	option.validate = function(section, value) {
		return value === '' || /^[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$/.test(value) || _('A key of 44 characters in Base64');
	};
	return option;
}

return network.registerProtocol('ropewalk', {
	getI18n: function() {
		return _('Ropewalk tunnel');
	},

	getIfname: function() {
		return this._ubus('l3_device') || this.sid;
	},

	getPackageName: function() {
		return 'ropewalk';
	},

	isFloating: function() {
		return true;
	},

	isVirtual: function() {
		return true;
	},

	getDevices: function() {
		return null;
	},

	containsDevice: function(device) {
		return network.getIfnameOf(device) == this.getIfname();
	},

	renderFormOptions: function(s) {
		let o = keyOf(s.taboption('general', form.Value, 'private_key', _('Private key')), _('Of `ropewalk genkey`.'));
		o.password = true;
		o.rmempty = false;

		o = s.taboption('general', form.DynamicList, 'addresses', _('Addresses'), _('Inner addresses of this end, each with its network: 10.77.0.2/24.'));
		o.datatype = 'cidr';
		o.rmempty = false;

		o = s.taboption('general', form.ListValue, 'uplinks', _('Uplinks'));
		o.value('auto', _('Every device with a default route'));
		o.value('', _('Only the paths below'));
		o.default = 'auto';

		o = s.taboption('general', form.ListValue, 'routing', _('Routes of the uplinks'));
		o.value('auto', _('Made by the tunnel'));
		o.value('', _('As they are'));
		o.default = 'auto';

		o = s.taboption('advanced', form.Value, 'listen_port', _('UDP port'));
		o.datatype = 'port';
		o.placeholder = '4754';

		o = s.taboption('advanced', form.Value, 'mtu', _('MTU'));
		o.datatype = 'range(576,65535)';
		o.placeholder = '1500';

		o = s.taboption('advanced', form.ListValue, 'relay', _('Relay'), _('Ends TCP connections at the tunnel. Both ends must say so.'));
		o.value('', _('Off'));
		o.value('tcp', _('TCP'));

		o = s.taboption('advanced', form.Value, 'scheduler', _('Scheduler'));
		o.placeholder = 'overflow';

		s.tab('peers', _('Peers'));
		o = s.taboption('peers', form.SectionValue, '_peers', form.GridSection, 'ropewalk_%s'.format(s.section));
		let peers = o.subsection;
		peers.anonymous = true;
		peers.addremove = true;
		peers.option(form.Flag, 'disabled', _('Off'));
		peers.option(form.Value, 'name', _('Name'));
		o = keyOf(peers.option(form.Value, 'public_key', _('Public key')), _('Of the other end.'));
		o.rmempty = false;
		o = keyOf(peers.option(form.Value, 'preshared_key', _('Preshared key')), _('Of `ropewalk genpsk`.'));
		o.password = true;
		o.modalonly = true;
		o = peers.option(form.DynamicList, 'endpoint', _('Endpoint'));
		o.placeholder = 'vpn.example.org:4754';
		o = peers.option(form.DynamicList, 'allowed_ips', _('Networks'));
		o.datatype = 'cidr';
		o.rmempty = false;

		s.tab('paths', _('Paths'));
		o = s.taboption('paths', form.SectionValue, '_paths', form.GridSection, 'ropewalk_path_%s'.format(s.section));
		let paths = o.subsection;
		paths.anonymous = true;
		paths.addremove = true;
		paths.option(form.Value, 'network', _('Interface'), _('Such as `wan`.'));
		paths.option(form.Value, 'interface', _('Device'), _('Instead of an interface.'));
		paths.option(form.Flag, 'metered', _('Metered'));
		paths.option(form.Flag, 'secondary', _('Secondary'));
		paths.option(form.Flag, 'backup', _('Backup'));
		paths.option(form.Value, 'quota', _('Quota')).placeholder = '50GB';
		paths.option(form.Value, 'rate', _('Rate')).placeholder = '20mbit';
	}
});
