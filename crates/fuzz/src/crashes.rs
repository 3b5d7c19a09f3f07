//! Crash images of a case, as starting pools of further cases: what a program meets when it opens a pool after a power failure.
//!
//! PMFuzz §3.2 and §4.5 fail at ordering points and at random places. Here: at each failure point (crash points with the same call
//! path), everything so far in PM and nothing beyond what is guaranteed, and a seeded sample of what lies between.

use crash::assignment::Assignment;
use crash::image::CrashImage;
use crash::points::Density;
use crash::survey::Survey;
use crash::view::PointView;
use crash::walk::{Rules, Walk, WalkError};
use persistency::point::PointError;
use recover::pages::Content;
use trace::ReadError;
use trace::event::PoolId;

use crate::image::Image;
use crate::random::Random;
use crate::recorded::RecordedCase;
use crate::tree::Crash;

/// Images of one case; more would crowd out those of others.
const MOST: usize = 12;

#[derive(Debug, thiserror::Error)]
pub enum CrashImageError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Walk(#[from] WalkError),
    #[error(transparent)]
    State(#[from] PointError),
}

/// Some crash images of a case, in the order of their crash points. `pools` is the order of pools in an image.
pub fn crash_images(
    case: &RecordedCase,
    pools: &[std::path::PathBuf],
    random: &mut Random,
) -> Result<Vec<(Crash, Image)>, CrashImageError> {
    let survey = Survey::of(&case.reader, Density::Fences, &|_, _| false)?;
    let mut wanted: Vec<(u64, trace::event::EventId)> =
        survey.points().filter(|(point, _)| point.occurrence == 1).map(|(point, _)| (point.index, point.at)).collect();
    // Each of them at most once, in a random choice that keeps the order.
    while wanted.len() > MOST {
        wanted.remove(random.index(wanted.len()));
    }
    let mut walk = Walk::new(&case.reader, Rules::default())?;
    let mut images = Vec::new();
    for (_, at) in wanted {
        walk.advance_to(at)?;
        let view = walk.view();
        let (state, name) = match random.below(3) {
            0 => (Assignment::everything(&view), "program-order"),
            1 => (Assignment::guaranteed(&view), "guaranteed-only"),
            _ => (some_lines(&view, random), "random"),
        };
        let image = view.image(&state.state(&view))?;
        if let Some(image) = content(&image, case, pools) {
            images.push((Crash { event: at.0, state: name.to_owned() }, image));
        }
    }
    Ok(images)
}

/// Each dirty line as it is, or as it is guaranteed.
fn some_lines(view: &PointView<'_>, random: &mut Random) -> Assignment {
    let (all, none) = (Assignment::everything(view), Assignment::guaranteed(view));
    Assignment(
        all.0.into_iter().zip(none.0).map(|(there, gone)| if random.once_in(2) { there } else { gone }).collect(),
    )
}

/// The bytes of a crash image; none: no pool has appeared yet.
fn content(image: &CrashImage<'_>, case: &RecordedCase, pools: &[std::path::PathBuf]) -> Option<Image> {
    let guaranteed = image.guaranteed();
    let mut contents: Vec<Option<Content>> = vec![None; pools.len()];
    for pool in guaranteed.pools().filter(|pool| guaranteed.has_appeared(*pool)) {
        let path = case.pools.get(pool.0 as usize)?;
        let Some(number) = pools.iter().position(|own| own == path) else { continue };
        contents[number] = Some(of_pool(image, pool));
    }
    contents.iter().any(Option::is_some).then(|| Image::new(contents))
}

fn of_pool(image: &CrashImage<'_>, pool: PoolId) -> Content {
    let guaranteed = image.guaranteed();
    let mut content = Content::zeros(guaranteed.len(pool));
    for (number, page) in guaranteed.pages(pool) {
        content.put(number * page.len() as u64, page);
    }
    for (line, bytes) in image.lines().iter().filter(|(line, _)| line.pool == pool) {
        content.put(line.start().offset.0, bytes);
    }
    content
}
