//! The algorithm `policy`, which another crate has.

use crate::common::{one_link, pipe};
use ropewalk_sim::Error;
use units::{Rate, Span};

#[test]
fn a_program_need_not_register_the_algorithm_policy() {
    let experiment = one_link("policy", pipe(Rate::from_mbit(10), Span::from_millis(10), 33), 1);
    let error = ropewalk_sim::run(&experiment, 1).expect_err("a policy without a file");
    assert!(matches!(error, Error::BadParameter { algorithm: "policy", .. }), "{error}");
}
