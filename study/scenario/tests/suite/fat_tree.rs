//! Fat trees.

use crate::common::read;
use ropewalk_scenario::model::Route;
use units::Rate;

#[test]
fn a_fat_tree_has_a_flow_for_each_host_over_paths_of_its_own() {
    let text = "name = \"tree\"\nduration = \"1s\"\n[fat_tree]\nk = 4\nrate = \"10mbit\"\npaths = 3\n\
                [[flow]]\nname = \"tcp\"\n[[flow]]\nname = \"both\"\nkind = \"mptcp\"\n";
    let tree = read(text, &[]).cells.remove(0).experiment;
    assert_eq!((tree.links.len(), tree.paths.len(), tree.flows.len()), (48, 48, 32));
    assert!(
        tree.links.iter().all(|link| link.forward == link.reverse && link.forward.rate == Some(Rate::from_mbit(10)))
    );
    for (host, paths) in tree.paths.chunks(3).enumerate() {
        assert!(paths.iter().all(|path| path.links[0] == host && path.turn * 2 == path.links.len()), "{paths:?}");
        assert!(paths.iter().all(|path| path.links.last() == paths[0].links.last()), "to one host: {paths:?}");
        assert_eq!(tree.flows[host].route, Route::Path(3 * host));
        let subflows: Vec<usize> = tree.flows[16 + host].kind.subflows().iter().map(|subflow| subflow.path).collect();
        assert_eq!(subflows, [3 * host, 3 * host + 1, 3 * host + 2]);
    }
    assert_eq!(read(text, &[]).cells[0].experiment, tree);
    assert_ne!(read(text, &["fat_tree.draw=2"]).cells[0].experiment.paths, tree.paths);
}
