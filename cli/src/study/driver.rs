//! The driver that the command line selects: the simulator, or real kernels.

use super::{DriverChoice, Run as Arguments};
use crate::Failure;
use runner::{Driver, Simulator};

/// The driver that the command line selects.
pub(crate) fn find(arguments: &Arguments) -> Result<Box<dyn Driver>, Failure> {
    match arguments {
        Arguments { on: DriverChoice::Sim, capture: true, .. } => {
            Err(Failure::Usage("--capture records packets of a kernel: add --on kernel".into()))
        }
        Arguments { on: DriverChoice::Sim, traffic: Some(_), .. } => {
            Err(Failure::Usage("--traffic names programs, which the simulator does not run: add --on kernel".into()))
        }
        Arguments { on: DriverChoice::Sim, .. } => Ok(Box::new(Simulator)),
        #[cfg(feature = "lab")]
        _ => super::lab_driver::find(arguments),
        #[cfg(not(feature = "lab"))]
        _ => Err(Failure::Environment(format!("--on: {}", crate::features::build_hint("lab")))),
    }
}
