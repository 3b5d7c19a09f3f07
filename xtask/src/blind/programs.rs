//! The programs: sets of bugs of the targets, and generated ones.

use targets::crash::{self, CrashTarget, SETUP, TWIN, Variant};
use targets::generated::Bug;

use super::BlindKind;

/// A program to check.
#[derive(Clone, Debug)]
pub struct Case {
    pub name: String,
    pub program: Program,
}

#[derive(Clone, Debug)]
pub enum Program {
    Target(Box<CrashTarget>, Vec<Variant>),
    Generated(Vec<Bug>),
}

/// How many bugs the generated programs have.
const SIZES: [usize; 7] = [2, 4, 8, 12, 18, 24, 30];

pub fn cases(kind: BlindKind) -> anyhow::Result<Vec<Case>> {
    let mut cases = Vec::new();
    let sizes = if kind == BlindKind::Setup { &[][..] } else { &SIZES };
    for &size in sizes {
        // Another mixture for each; every fifth slot or so is right.
        let bugs: Vec<Bug> =
            (0..).map(|number| Bug::ALL[(number * 3 + size) % Bug::ALL.len()]).take(size * 5 / 4).collect();
        let bugs = if kind == BlindKind::Twins { vec![Bug::None; bugs.len()] } else { bugs };
        cases.push(Case { name: format!("generated/{size}"), program: Program::Generated(bugs) });
    }
    for (suite, targets) in [("ops", crash::with_operations()?), ("crash", crash::all()?)] {
        for target in targets {
            // They have one bug each, need something that the check does not know by itself, or show what is missed.
            if ["files/", "databases/", "limits/"].iter().any(|folder| target.name.starts_with(folder)) {
                continue;
            }
            if kind == BlindKind::Twins {
                let name = format!("{suite}/{}", target.name);
                cases.push(Case { name, program: Program::Target(Box::new(target), vec![TWIN]) });
                continue;
            }
            for set in &target.together {
                let mut set = set.clone();
                match kind {
                    // libpmemobj has a set-up of its own.
                    BlindKind::Setup if suite == "crash" || target.name.starts_with("pmdk/") => continue,
                    BlindKind::Setup => set.push(SETUP),
                    BlindKind::OneMore if set.len() == 1 => continue,
                    _ => {}
                }
                let numbers = if target.together.len() == 1 { String::new() } else { format!(":{}", joined(&set)) };
                let name = format!("{suite}/{}{numbers}", target.name);
                cases.push(Case { name, program: Program::Target(Box::new(target.clone()), set) });
            }
        }
    }
    Ok(cases)
}

fn joined(set: &[Variant]) -> String {
    set.iter().map(Variant::to_string).collect::<Vec<_>>().join("+")
}
