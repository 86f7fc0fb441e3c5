//! The registry of schedulers. What every scheduler must keep to is tested with MPTCP, in `transport/tests`.

mod registration;
mod registry;
