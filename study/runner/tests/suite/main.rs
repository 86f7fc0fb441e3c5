//! The runner's tests.

mod execute;
