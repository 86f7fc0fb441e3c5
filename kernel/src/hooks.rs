//! The hooks of a congestion control: those of the running kernel, and the functions of a registered program that serve
//! them.

use libbpf_rs::btf::types::{MemberAttr, Struct};
use libbpf_rs::btf::{Btf, BtfKind};
use libbpf_rs::query::ProgInfoIter;
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use std::collections::HashMap;
use std::sync::OnceLock;

/// The hook of the first packet after an idle time, since Linux 7.1.
pub(crate) const TX_START: &str = "cwnd_event_tx_start";

/// A hook of a registered program, and the eBPF function that serves it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hook {
    /// Member of the kernel's `struct tcp_congestion_ops`.
    pub name: &'static str,
    /// Hash of the function's instructions as loaded: for one source on one kernel it is always the same.
    pub tag: [u8; 8],
    /// Calls since it was loaded, while `kernel.bpf_stats_enabled` was 1.
    pub calls: u64,
}

/// The hooks of the registration with this id, in the kernel's order. Only root sees them; for others the list is
/// empty.
#[must_use]
pub fn hooks(id: u32) -> Vec<Hook> {
    let Some(value) = value(id) else { return Vec::new() };
    let functions: HashMap<u32, ([u8; 8], u64)> =
        ProgInfoIter::default().map(|info| (info.id, (info.tag.0, info.run_cnt))).collect();
    let hook = |(name, offset): &'static (String, usize)| {
        // The kernel returns the function's id instead of its address.
        let id = u32::from_ne_bytes(value.get(*offset..offset + 4)?.try_into().ok()?);
        functions.get(&id).map(|&(tag, calls)| Hook { name, tag, calls })
    };
    members().iter().filter_map(hook).collect()
}

/// The value of a `struct_ops` map; `None` if it cannot be read.
pub(crate) fn value(id: u32) -> Option<Vec<u8>> {
    MapHandle::from_map_id(id).ok()?.lookup(&0u32.to_ne_bytes(), MapFlags::empty()).ok()?
}

/// Whether the running kernel has a hook.
pub(crate) fn kernel_has(name: &str) -> bool {
    members().iter().any(|(member, _)| member == name)
}

/// The hooks that the running kernel has, with their offsets in a map's value, bytes.
fn members() -> &'static [(String, usize)] {
    static MEMBERS: OnceLock<Vec<(String, usize)>> = OnceLock::new();
    MEMBERS.get_or_init(|| Btf::from_vmlinux().ok().and_then(|btf| read_members(&btf)).unwrap_or_default())
}

fn read_members(btf: &Btf<'_>) -> Option<Vec<(String, usize)>> {
    let value: Struct<'_> = btf.type_by_name("bpf_struct_ops_tcp_congestion_ops")?;
    let ops: Struct<'_> = btf.type_by_name("tcp_congestion_ops")?;
    let start = value
        .iter()
        .find(|member| member.name.is_some_and(|name| name == "data"))
        .and_then(|data| offset(data.attr))?;
    let hook = |member: libbpf_rs::btf::types::StructMember<'_>| {
        let pointer = btf.type_by_id::<libbpf_rs::btf::BtfType<'_>>(member.ty)?;
        let is_function = pointer.next_type().is_some_and(|target| target.kind() == BtfKind::FuncProto);
        is_function.then_some((member.name?.to_str()?.to_owned(), start + offset(member.attr)?))
    };
    Some(ops.iter().filter_map(hook).collect())
}

fn offset(attribute: MemberAttr) -> Option<usize> {
    match attribute {
        MemberAttr::Normal { offset } => usize::try_from(offset / 8).ok(),
        MemberAttr::BitField { .. } => None,
    }
}
