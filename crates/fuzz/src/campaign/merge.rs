//! Takes in what slices and checks of a round have found, in the order of the round: cases that are still news, the cases that made
//! their starting pools, their images, and root causes that nobody knew.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::findings::Found;
use super::slice::SliceDone;
use super::state::{State, TriedCase};
use crate::case::{CaseId, Origin};
use crate::corpus::{CorpusError, failed};
use crate::image::{Image, ImageId};

impl State {
    /// Takes in what lies in `folder`. The unit knew the first `known` cases. Returns root causes that are new.
    pub(super) fn merge(&mut self, folder: &Path, known: usize) -> Result<Vec<Found>, CorpusError> {
        let done = SliceDone::read(folder).map_err(failed("read what a worker sent to", folder))?;
        self.merge_cases(&done, folder, known)?;
        self.executions = self.executions.saturating_add(done.executions);
        let counts = [
            (&mut self.hangs, done.hangs),
            (&mut self.crashes, done.crashes),
            (&mut self.stable.0, done.stable.0),
            (&mut self.stable.1, done.stable.1),
            (&mut self.suggested, done.suggested),
            (&mut self.unchecked, done.unchecked),
        ];
        counts.into_iter().for_each(|(own, sent)| *own = own.saturating_add(sent));
        self.helper_trouble = self.helper_trouble.take().or(done.helper_trouble);
        self.unchecked_why = self.unchecked_why.take().or(done.unchecked_why);
        let mut new = Vec::new();
        for mut found in done.found {
            let case = folder.join("findings").join(&found.finding.id.0).join("case");
            let read = || failed("read what a worker sent to", folder);
            let input = std::fs::read(case.join("input")).map_err(read())?;
            let start = Image::read(&case, "start", self.tree.pools()).map_err(read())?;
            // Of a case of the slice: the next one, as for a case that broke down.
            if found.case.0 as usize >= known {
                found.case = CaseId(self.corpus.cases().len() as u32);
            }
            found.second = self.elapsed().as_secs();
            found.execution = self.executions;
            let own = self.folder().to_owned();
            let added = self.findings.add(found.clone(), Some(&folder.join("findings")), &input, &start);
            if added.map_err(failed("write a finding in", &own))? {
                new.push(found);
            }
        }
        Ok(new)
    }

    fn merge_cases(&mut self, done: &SliceDone, folder: &Path, known: usize) -> Result<(), CorpusError> {
        let wanted = self.wanted(done, known);
        let read = || failed("read what a worker sent to", folder);
        let mut images: FxHashMap<ImageId, Arc<Image>> = FxHashMap::default();
        for (number, node) in done.nodes.iter().enumerate() {
            let packed = SliceDone::image(folder, number).map_err(read())?;
            let image = self.tree.rebuilt(node, &packed, &images).map_err(read())?;
            images.insert(node.id, image);
        }
        // Their numbers there, and here.
        let mut here: FxHashMap<CaseId, CaseId> = FxHashMap::default();
        for (number, sent) in done.cases.iter().enumerate() {
            if !wanted.contains(&number) {
                continue;
            }
            let case = &sent.case;
            let left = match images.get(&case.left) {
                Some(image) => Arc::clone(image),
                None => self.image(case.left)?,
            };
            let input = SliceDone::input(folder, number).map_err(read())?;
            let parent = ancestor(done, case.parent, known, &here);
            let origin = Origin { parent, found_by: case.found_by };
            let execution = self.executions.saturating_add(case.execution.saturating_sub(done.before));
            let (start, stable) = (case.start, case.stable);
            let tried = TriedCase { origin, input: &input, start, left: &left, trail: &sent.trail, stable };
            let (id, _) = self.keep_anyway(&tried, execution)?;
            here.insert(case.id, id);
            let crashes = done.nodes.iter().filter(|node| node.case == case.id && node.crash.is_some());
            for node in crashes {
                let own = self.folder().join("images");
                let added = self.tree.add(&images[&node.id], node.parent, id, node.crash.clone());
                added.map_err(failed("write an image in", &own))?;
            }
        }
        Ok(())
    }

    /// Cases that are news, and those that made their starting pools.
    fn wanted(&self, done: &SliceDone, known: usize) -> BTreeSet<usize> {
        let mut covered = self.covered.clone();
        let mut wanted = BTreeSet::new();
        for (number, sent) in done.cases.iter().enumerate() {
            if covered.news(&sent.trail).priority().is_some() {
                covered.add(&sent.trail);
                wanted.insert(number);
            }
        }
        for number in (0..done.cases.len()).rev() {
            if wanted.contains(&number) && self.tree.node(done.cases[number].case.start).is_none() {
                let maker = done.nodes.iter().find(|node| node.id == done.cases[number].case.start);
                wanted.extend(maker.and_then(|node| (node.case.0 as usize).checked_sub(known)));
            }
        }
        wanted
    }
}

/// The case that one was made of, or the nearest before it that is known here.
fn ancestor(
    done: &SliceDone,
    mut parent: Option<CaseId>,
    known: usize,
    here: &FxHashMap<CaseId, CaseId>,
) -> Option<CaseId> {
    loop {
        let id = parent?;
        let Some(number) = (id.0 as usize).checked_sub(known) else { return Some(id) };
        if let Some(id) = here.get(&id) {
            return Some(*id);
        }
        // A case is made of an earlier one: else this would never end.
        parent = done.cases.get(number)?.case.parent.filter(|earlier| *earlier < id);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;
    use crate::campaign::slice::{DONE, SliceCase};
    use crate::campaign::state::Budget;
    use crate::case::{Case, FoundBy};
    use crate::corpus::{About, VERSION};
    use crate::coverage::{Priority, Trail};
    use crate::tree::Tree;
    use recover::pages::Content;

    fn case(id: u32, left: ImageId) -> Case {
        Case {
            id: CaseId(id),
            parent: id.checked_sub(1).map(CaseId),
            start: ImageId::NONE,
            left,
            priority: Priority::High,
            execution: 7,
            second: 1,
            pm_transitions: 1,
            edges: 1,
            file: "1".to_owned(),
            stable: true,
            found_by: FoundBy::Mutation,
        }
    }

    /// What a worker leaves that has kept two cases and their images.
    fn unit(folder: &Path) -> SliceDone {
        let mut tree = Tree::open(&folder.join("tree"), 1).expect("a tree");
        let images = [[1; 100], [2; 100]].map(|bytes| Arc::new(Image::new(vec![Some(Content::of_bytes(&bytes))])));
        for (number, image) in images.iter().enumerate() {
            tree.add(image, ImageId::NONE, CaseId(number as u32), None).expect("added");
        }
        let cases = images.iter().zip(0..).map(|(image, number)| SliceCase {
            case: case(number, image.id()),
            trail: Trail { counters: vec![(number * 7, 1), (70_000 + number, 2)] },
        });
        let cases = cases.collect();
        ["inputs", "images"].iter().for_each(|name| std::fs::create_dir_all(folder.join(name)).expect("made"));
        for (number, node) in tree.nodes().iter().enumerate() {
            let number = number.to_string();
            std::fs::write(folder.join("inputs").join(&number), b"put 1 1\n").expect("written");
            std::fs::write(folder.join("images").join(number), tree.packed(node).expect("packed")).expect("written");
        }
        SliceDone { executions: 20, cases, nodes: tree.nodes().to_vec(), ..SliceDone::default() }
    }

    fn about() -> About {
        About {
            version: VERSION,
            command: vec!["program".to_owned()],
            delivery: "operations".to_owned(),
            pools: vec!["pool".into()],
            seed: 1,
        }
    }

    /// A campaign without cases.
    struct Fresh {
        state: State,
        _folder: tempfile::TempDir,
    }

    impl Fresh {
        fn new() -> Fresh {
            let folder = tempfile::tempdir().expect("a folder");
            let budget = Budget { time: None, executions: None, check_share: 0.5 };
            let state = State::open(&folder.path().join("out"), &about(), budget, 1).expect("begun");
            Fresh { state, _folder: folder }
        }

        fn merged(mut self, folder: &Path, known: usize) -> Result<usize, CorpusError> {
            self.state.merge(folder, known)?;
            Ok(self.state.corpus.cases().len())
        }
    }

    /// They are refused, or merged.
    #[test]
    fn altered_results_of_workers() {
        let place = tempfile::tempdir().expect("a folder");
        let text = serde_json::to_vec(&unit(place.path())).expect("JSON");
        std::fs::write(place.path().join(DONE), &text).expect("written");
        assert_eq!(Fresh::new().merged(place.path(), 0).expect("merged"), 2);
        // Beginning a campaign takes long: what is no result changes nothing, and they share one.
        let shared = RefCell::new(Fresh::new());
        parser_tests::hammer::hammer("fuzz-done", std::slice::from_ref(&text), &|input| {
            std::fs::write(place.path().join(DONE), input).expect("written");
            let known = input.len() % 2;
            if serde_json::from_slice::<SliceDone>(input).is_ok() {
                drop(Fresh::new().merged(place.path(), known));
            } else {
                shared.borrow_mut().state.merge(place.path(), known).expect_err("it is no result");
            }
        });
        std::fs::write(place.path().join(DONE), &text).expect("written");
        let image = place.path().join("images/0");
        parser_tests::hammer::hammer("fuzz-image", &[std::fs::read(&image).expect("read")], &|input| {
            std::fs::write(&image, input).expect("written");
            if shared.borrow_mut().state.merge(place.path(), 0).is_ok() {
                *shared.borrow_mut() = Fresh::new();
            }
        });
    }

    /// They are refused, or the campaign goes on.
    #[test]
    fn altered_files_of_campaigns() {
        let place = tempfile::tempdir().expect("a folder");
        let text = serde_json::to_vec(&unit(place.path())).expect("JSON");
        std::fs::write(place.path().join(DONE), &text).expect("written");
        let mut fresh = Fresh::new();
        fresh.state.merge(place.path(), 0).expect("merged");
        fresh.state.save(true).expect("written");
        let out = fresh.state.folder().to_owned();
        let data = std::fs::read(out.join("images/data")).expect("it is there");
        let go_on = || {
            // A list that ends early cuts it.
            std::fs::write(out.join("images/data"), &data).expect("written");
            let budget = Budget { time: None, executions: None, check_share: 0.5 };
            let mut state = State::open(&out, &about(), budget, 1)?;
            (0..4).try_for_each(|_| state.next(true).map(drop))
        };
        for name in ["state.json", "cases.jsonl", "images/tree.jsonl"] {
            let file = out.join(name);
            let right = std::fs::read(&file).expect("it is there");
            go_on().expect("a campaign");
            parser_tests::hammer::hammer(name.trim_start_matches("images/"), std::slice::from_ref(&right), &|input| {
                std::fs::write(&file, input).expect("written");
                let _ = go_on();
            });
            std::fs::write(&file, right).expect("written");
        }
    }

    /// Cases that are made of each other have no ancestor.
    #[test]
    fn ancestors_end() {
        let place = tempfile::tempdir().expect("a folder");
        let mut done = unit(place.path());
        done.cases[0].case.parent = Some(CaseId(1));
        assert_eq!(ancestor(&done, Some(CaseId(1)), 0, &FxHashMap::default()), None);
    }
}
