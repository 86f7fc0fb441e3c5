//! The kernels that an experiment can run on.

use crate::guest_kernel::GuestKernel;
use crate::host_kernel::HostKernel;
use crate::support;

/// A kernel that the lab runs experiments on.
#[derive(Clone, Debug)]
pub(crate) enum Backend {
    /// User-Mode Linux or a virtual machine, booted for each run.
    Guest(GuestKernel),
    /// This machine's own kernel, in network namespaces.
    Netns(HostKernel),
}

/// The backends that may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackendChoice {
    /// For each experiment the first that can run it: User-Mode Linux in virtual time, the machine's own kernel,
    /// User-Mode Linux in real time.
    Any,
    /// User-Mode Linux.
    Uml,
    /// The machine's own kernel, in network namespaces.
    Netns,
}

impl Backend {
    /// The kernel in words, for the record of a run.
    pub(crate) fn describe(&self) -> String {
        match self {
            Self::Guest(kernel) => {
                let clock = if kernel.is_virtual { "virtual" } else { "real" };
                let what = if kernel.is_image { "virtual machine" } else { "User-Mode Linux" };
                format!("Linux {} ({what}, {clock} time)", kernel.version)
            }
            Self::Netns(host) => format!("Linux {} (network namespaces)", host.version),
        }
    }

    /// The capabilities of the kernel.
    pub(crate) fn capabilities(&self) -> &support::Capabilities {
        match self {
            Self::Guest(kernel) => &kernel.capabilities,
            Self::Netns(host) => &host.capabilities,
        }
    }

    /// Whether the kernel runs in virtual time.
    pub(crate) fn is_virtual(&self) -> bool {
        matches!(self, Self::Guest(kernel) if kernel.is_virtual)
    }
}
