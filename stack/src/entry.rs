//! The registry of stacks.

use crate::Endpoint;
use params::{AlgorithmChoice, Entry, ParamError, ParamValue, Parameter, Params, RegisterError, Registered};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// What precedes the name of a congestion control that is the stack's own: `own:bbr3`.
pub const OWN: &str = "own:";

/// A stack that a program contains.
#[derive(Debug)]
pub struct StackEntry {
    /// The name in scenarios.
    pub name: &'static str,
    /// One line that says what the stack is.
    pub title: &'static str,
    /// The version of the stack and of the code that hosts it. A results folder records it.
    pub code_version: &'static str,
    /// The maximum number of paths of a connection.
    pub max_paths: u16,
    /// Declared parameters, such as windows and limits.
    pub parameters: &'static [Parameter],
    /// Makes both ends of a connection: the one that connects, and its peer.
    pub constructor: Constructor,
}

/// Makes both ends of a connection, or says why it cannot: a congestion control that the stack does not have, or cannot
/// carry out.
pub type DynConstructor = dyn Fn(&Setup<'_>) -> Result<[Box<dyn Endpoint>; 2], String> + Send + Sync;

/// A value that makes both ends of a connection.
#[derive(Clone)]
pub struct Constructor(pub Arc<DynConstructor>);

impl fmt::Debug for Constructor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Constructor")
    }
}

/// Arguments of a stack's constructor.
#[derive(Clone, Copy, Debug)]
pub struct Setup<'a> {
    /// The only source of randomness.
    pub seed: u64,
    /// Number of paths.
    pub paths: u16,
    /// The largest payload of UDP that all paths carry, bytes.
    pub max_datagram: u32,
    /// The congestion control: one of Ropewalk's registry, or one of the stack's own, whose name begins with [`OWN`]. None
    /// for the stack's default.
    pub congestion: Option<&'a AlgorithmChoice>,
    /// Checked parameters.
    pub params: &'a Params,
}

impl Entry for StackEntry {
    fn name(&self) -> &'static str {
        self.name
    }

    fn aliases(&self) -> &'static [&'static str] {
        &[]
    }

    fn parameters(&self) -> &'static [Parameter] {
        self.parameters
    }

    fn code_version(&self) -> Option<&'static str> {
        Some(self.code_version)
    }
}

impl StackEntry {
    /// The parameters that are given, and the defaults of the others.
    ///
    /// # Errors
    /// A parameter that the stack does not have, or a value outside its range.
    pub fn params(&self, given: &BTreeMap<String, ParamValue>) -> Result<Params, ParamError> {
        Params::new(self.parameters, given)
    }

    /// Both ends of a connection.
    ///
    /// # Errors
    /// The stack cannot have this congestion control or so many paths.
    pub fn endpoints(&self, setup: &Setup<'_>) -> Result<[Box<dyn Endpoint>; 2], String> {
        if setup.paths > self.max_paths {
            return Err(format!("{} has connections over at most {} paths", self.name, self.max_paths));
        }
        (self.constructor.0)(setup)
    }
}

/// The stacks that programs have registered.
static REGISTERED: Registered<StackEntry> = Registered::new();

/// Every stack of this program.
#[must_use]
pub fn entries() -> Vec<&'static StackEntry> {
    REGISTERED.after(&[])
}

/// The stack with the name `name`.
#[must_use]
pub fn find(name: &str) -> Option<&'static StackEntry> {
    REGISTERED.find(name, &[])
}

/// Adds a stack to this program.
///
/// # Errors
/// See [`RegisterError`]; the registry is then unchanged.
pub fn register(entry: StackEntry) -> Result<&'static StackEntry, RegisterError> {
    REGISTERED.register(entry, &[])
}
