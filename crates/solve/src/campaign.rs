//! Solving for a fuzzing campaign: if mutation is stuck, follows test cases of the corpus and turns branches towards PM code that never ran. Suggests
//! the inputs that executed something new to the campaign, which runs them like any mutant.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use drive::driver::Driver;
use fuzz::campaign::helper::{Asked, Helper, Known, Suggested};
use fuzz::case::CaseId;
use fuzz::execute::{Delivery, Subject};
use fuzz::image::Image;
use fuzz::recorded::{RecordCaseError, follow_case};
use record::flow::{FlowHandle, InputSource};

use crate::explore::{Explorer, News, Strategy};
use crate::follow::{Follow, Followed, FreeBytes};
use crate::run::pm_instructions;
use crate::smt::Process;
use crate::solver::{Embedded, Solver, Stages};

/// Inputs that are followed each time that it is asked.
const SLICE: usize = 8;

/// A helper that solves.
#[derive(Debug)]
pub struct Solving {
    explorer: Explorer,
    /// By number: cases that were followed.
    cases: Vec<(CaseId, Arc<Image>)>,
    trouble: Option<String>,
}

impl Solving {
    /// `installed`: asks an installed solver where the embedded one gives up.
    pub fn new(seed: u64, limit: Duration, installed: bool) -> Solving {
        let mut solvers: Vec<Box<dyn Solver>> = vec![Box::new(Embedded::default())];
        if installed && let Some(process) = Process::installed() {
            solvers.push(Box::new(process));
        }
        let explorer = Explorer::new(Strategy::PmAware, Stages::new(solvers, limit), seed, Vec::new());
        Solving { explorer, cases: Vec::new(), trouble: None }
    }

    fn follow(&mut self, subject: &Subject, input: &[u8], start: &Image) -> Option<(Followed, Vec<u64>)> {
        match followed(subject, input, start) {
            Ok(ran) => Some(ran),
            Err(error) => {
                self.trouble.get_or_insert(error.to_string());
                None
            }
        }
    }
}

impl Helper for Solving {
    fn help(&mut self, asked: &Asked<'_>) -> Vec<Suggested> {
        if let Some(Known { id, input, start }) = &asked.case
            && let Some((followed, pm)) = self.follow(asked.subject, input, start)
        {
            let from = self.cases.len() as u32;
            self.cases.push((*id, Arc::clone(start)));
            self.explorer.ran(input.to_vec(), followed, &pm, None, from);
        }
        let mut suggested = Vec::new();
        for _ in 0..SLICE {
            let Some(proposal) = self.explorer.next(asked.go_on) else { break };
            let (parent, start) = self.cases[proposal.from as usize].clone();
            let Some((followed, pm)) = self.follow(asked.subject, &proposal.input, &start) else { continue };
            let news = self.explorer.ran(proposal.input.clone(), followed, &pm, Some(&proposal), proposal.from);
            if news != News::default() {
                suggested.push(Suggested { parent, input: proposal.input, start });
            }
        }
        suggested
    }

    fn trouble(&self) -> Option<String> {
        self.trouble.clone()
    }
}

fn followed(subject: &Subject, input: &[u8], start: &Image) -> Result<(Followed, Vec<u64>), RecordCaseError> {
    let words: Vec<String> = std::iter::once(subject.command.program.display().to_string())
        .chain(subject.command.args.iter().map(|word| word.to_string_lossy().into_owned()))
        .collect();
    let follow = Follow::new(input, free(subject, input), Driver::of(&words).is_some());
    let follow = Arc::new(Mutex::new(follow));
    let recorded = follow_case(subject, input, start, FlowHandle::new(Arc::clone(&follow)))?;
    let pm = pm_instructions(&recorded.reader)?;
    let follow = std::mem::take(&mut *follow.lock().unwrap_or_else(PoisonError::into_inner));
    Ok((follow.into_followed(), pm))
}

/// All bytes of the input are free, but ends of lines where these separate operations or arguments.
fn free(subject: &Subject, input: &[u8]) -> FreeBytes {
    let places = |from: usize, bytes: &[u8], lines: bool| -> Vec<Option<u32>> {
        let place = |(at, byte): (usize, &u8)| (!lines || *byte != b'\n').then_some((from + at) as u32);
        bytes.iter().enumerate().map(place).collect()
    };
    let mut free = FreeBytes::new();
    match subject.delivery {
        Delivery::Operations => {
            free.insert(InputSource::File, places(0, input, true));
        }
        Delivery::Stdin | Delivery::File(_) => {
            free.insert(InputSource::File, places(0, input, false));
        }
        Delivery::Arguments => {
            let (mut argument, mut from) = (1 + subject.command.args.len() as u32, 0);
            for line in input.strip_suffix(b"\n").unwrap_or(input).split(|&byte| byte == b'\n') {
                // An argument without its zero bytes would be shifted.
                if !line.contains(&0) {
                    free.insert(InputSource::Argument(argument), places(from, line, false));
                }
                (argument, from) = (argument + 1, from + line.len() + 1);
            }
        }
    }
    free
}
