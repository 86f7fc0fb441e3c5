use super::*;

/// A kernel with Reno and CUBIC, and programs for CUBIC, LIA and LIA over BBR.
fn capabilities(unavailable_reason: Option<&str>) -> Capabilities {
    let names = vec![("cubic", "rw_cubic"), ("lia", "rw_lia"), ("lia-bbr", "rw_lia_bbr")];
    let programs = match unavailable_reason {
        Some(reason) => Programs { names: Vec::new(), unavailable_reason: Some(reason.into()) },
        None => Programs { names, unavailable_reason: None },
    };
    let own = ["cubic", "reno"].map(str::to_owned).to_vec();
    Capabilities { congestion_controls: own, programs, ..Capabilities::default() }
}

fn with(name: &str, parameters: &[(&str, &str)]) -> AlgorithmChoice {
    let parameters = parameters.iter().map(|(key, value)| ((*key).to_owned(), ParamValue::Choice((*value).to_owned())));
    AlgorithmChoice { parameters: parameters.collect(), ..AlgorithmChoice::from(name) }
}

#[test]
fn the_kernels_own_algorithm_has_precedence_over_a_program() {
    let capabilities = capabilities(None);
    let kernel_name = |choice: AlgorithmChoice| capabilities.kernel_name(&choice).map(str::to_owned);
    assert_eq!(kernel_name("cubic".into()).as_deref(), Some("cubic"));
    assert_eq!(kernel_name("lia".into()).as_deref(), Some("rw_lia"));
    assert_eq!(kernel_name(with("lia", &[("path", "bbr")])).as_deref(), Some("rw_lia_bbr"));
    assert_eq!(kernel_name(with("lia", &[("path", "reno")])).as_deref(), Some("rw_lia"), "its default");
    for unknown in [with("lia", &[("steps", "linux")]), with("cubic", &[("beta", "0.5")]), "copa".into()] {
        assert_eq!(kernel_name(unknown), None);
    }
    assert!(!capabilities.may_be_default(&"cubic".into()) && capabilities.may_be_default(&"lia".into()));
}

#[test]
fn a_refusal_says_what_there_is_or_what_is_missing() {
    let with_programs = capabilities(None);
    assert!(with_programs.why_unknown(&with("lia", &[("steps", "linux")])).starts_with("parameters of"));
    let message = with_programs.why_unknown(&"copa".into());
    assert!(message.contains("this kernel has cubic, reno, and by") && message.contains("lia-bbr"), "{message}");
    let message = capabilities(Some("it has no BTF")).why_unknown(&"lia".into());
    assert!(message.ends_with("programs: it has no BTF"), "{message}");
    assert_eq!(
        Capabilities::default().why_unknown(&"lia".into()),
        "congestion control `lia`: this kernel has ",
        "User-Mode Linux takes no programs"
    );
}
