//! Six pairs of hidden links, some of them with traffic that no model has: the fit predicts better than the naive links do.

#[path = "../examples/truth/judge.rs"]
mod judge;

use judge::{Score, Truth, candidates, median_size};

#[test]
fn fits_of_six_hidden_pairs_predict_goodput_better_than_naive_links() {
    let candidates = candidates(&["cubic", "reno", "bbr", "wvegas"], &["minrtt", "roundrobin"]);
    let truth = Truth::simulated(3, 8);
    let scores = [1, 2, 3, 4, 5, 6].map(|seed| Score::of(&truth, seed, 3, 120, &candidates).expect("the runs succeed"));
    let goodput = scores.each_ref().map(|score| &score.values[0]);
    let mean = |values: [f64; 6]| values.iter().sum::<f64>() / 6.0;
    let [fit, naive] = [1, 2].map(|whose| mean(goodput.map(|predicted| predicted.tau[whose])));
    assert!(fit > naive, "Kendall's tau {fit} of the fits, {naive} of naive links");
    let [fit, naive] = [0, 1].map(|whose| mean(goodput.map(|predicted| median_size(&predicted.errors[whose]))));
    assert!(fit < naive, "an error of {fit} of the fits, {naive} of naive links");
    let within: usize = goodput.iter().map(|predicted| predicted.within).sum();
    let widths = goodput.map(|predicted| predicted.half_width);
    assert!(within >= 6 * candidates.len() / 2, "{within} of {} within +-{widths:?}", 6 * candidates.len());
    let (known, all) =
        scores.iter().map(|score| score.unknowns[0]).fold((0, 0), |sum, of| (sum.0 + of.0, sum.1 + of.1));
    assert!(2 * known > all, "{known} of {all} unknowns of paths as the model has them within their intervals");
    assert!(scores.iter().all(|score| score.fit.beats_naive()), "each is nearer to its measurement");
}
