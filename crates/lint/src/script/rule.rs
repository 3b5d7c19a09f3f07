//! A script as a rule.

use std::fmt;
use std::fs;
use std::path::Path;
use std::rc::Rc;

use finding::finding::{Class, Role};
use finding::severity::{Level, Severity};
use finding::site::SiteId;
use rhai::{AST, CallFnOptions, Dynamic, Engine, Map, Scope};
use trace::Tables;

use super::engine::{self, Reports};
use super::error::ScriptError;
use super::view;
use crate::rule::{LostStore, Moment, Rule, RuleError, RuleInfo, Wants, role_of};
use crate::sightings::Sink;

/// A rule in a file.
pub struct Script {
    info: RuleInfo,
    watches: Vec<String>,
    engine: Engine,
    ast: AST,
    reports: Reports,
    handlers: Vec<&'static str>,
    /// `this` in the script's functions: what it remembers from event to event.
    state: Dynamic,
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Script").field("info", &self.info).field("handlers", &self.handlers).finish_non_exhaustive()
    }
}

impl Script {
    pub fn read(path: &Path) -> Result<Script, ScriptError> {
        let text = fs::read_to_string(path).map_err(|source| ScriptError::Read { path: path.to_owned(), source })?;
        Script::compile(&text, path)
    }

    /// `path` is for messages only.
    pub fn compile(text: &str, path: &Path) -> Result<Script, ScriptError> {
        let path = path.to_owned();
        let (engine, reports) = engine::engine();
        let wrong = |what: String| ScriptError::Wrong { path: path.clone(), what };
        let ast = engine.compile(text).map_err(|error| wrong(error.to_string()))?;
        let mut handlers = Vec::new();
        let mut has_rule = false;
        for function in ast.iter_functions() {
            let known = view::HANDLERS.iter().find(|known| **known == function.name && function.params.len() == 1);
            match (known, function.name) {
                (Some(known), _) => handlers.push(*known),
                (None, "rule") => has_rule = true,
                (None, helper) if helper.starts_with('_') => {}
                (None, name) => {
                    return Err(ScriptError::UnknownHandler { path: path.clone(), name: name.to_owned() });
                }
            }
        }
        if !has_rule {
            return Err(ScriptError::NoRule { path });
        }
        let options = CallFnOptions::new().eval_ast(false);
        let told = engine
            .call_fn_with_options::<Map>(options, &mut Scope::new(), &ast, "rule", ())
            .map_err(|error| wrong(engine::explain(&error)))?;
        let (info, watches) = describe(told, &path)?;
        reports.borrow_mut().clear();
        Ok(Script { info, watches, engine, ast, reports, handlers, state: Map::new().into() })
    }

    /// Calls a handler and hands its reports on.
    fn call(&mut self, handler: &str, event: Map, mut report: impl FnMut(Option<String>)) -> Result<(), RuleError> {
        let options = CallFnOptions::new().eval_ast(false).bind_this_ptr(&mut self.state);
        let called =
            self.engine.call_fn_with_options::<Dynamic>(options, &mut Scope::new(), &self.ast, handler, (event,));
        if let Err(error) = called {
            return Err(RuleError(engine::explain(&error)));
        }
        self.reports.borrow_mut().drain(..).for_each(&mut report);
        Ok(())
    }
}

/// Reads the map that `rule()` returns.
fn describe(mut told: Map, path: &Path) -> Result<(RuleInfo, Vec<String>), ScriptError> {
    let bad = |what: String| ScriptError::BadRule { path: path.to_owned(), what };
    let mut text = |key: &str| told.remove(key).map(|value| value.to_string());
    let id = text("id").filter(|id| !id.is_empty()).ok_or_else(|| bad("has no id: \"...\"".to_owned()))?;
    if id.starts_with("FP") {
        return Err(bad(format!("has the id {id}; ids that begin with FP are the built-in rules'")));
    }
    let title = text("title").ok_or_else(|| bad("has no title: \"...\"".to_owned()))?;
    let name = text("name").unwrap_or_else(|| id.to_lowercase());
    let severity: Severity = match text("severity") {
        Some(word) => word.parse().map_err(|error| bad(format!("is wrong: {error}")))?,
        None => Severity::Warning,
    };
    let watches = match told.remove("watch") {
        Some(list) => list
            .into_typed_array::<rhai::ImmutableString>()
            .map_err(|_| bad("has a `watch` that is not an array of function names".to_owned()))?,
        None => Vec::new(),
    };
    if let Some(unknown) = told.keys().next() {
        return Err(bad(format!("has an unknown key `{unknown}`; known are id, name, title, severity, watch")));
    }
    let info = RuleInfo {
        id: id.into(),
        name: name.into(),
        class: Class::Custom,
        level: Level::Report(severity),
        severity,
        title: title.into(),
        about_flushes: false,
    };
    Ok((info, watches.into_iter().map(|symbol| symbol.to_string()).collect()))
}

impl Rule for Script {
    fn info(&self) -> &RuleInfo {
        &self.info
    }

    fn wants(&self, _: &Tables) -> Wants {
        self.handlers.iter().fold(Wants::NOTHING, |wants, handler| {
            wants.and(match *handler {
                "store" => Wants::STORES,
                "flush" => Wants::FLUSHES,
                "fence" => Wants::FENCES,
                "called" | "returned" => Wants::CALLS,
                _ => Wants::NOTHING,
            })
        })
    }

    fn watches(&self) -> Vec<String> {
        self.watches.clone()
    }

    fn event(&mut self, moment: &Moment<'_>, out: &mut Sink<'_>) -> Result<(), RuleError> {
        let Some(handler) = view::handler(moment.event).filter(|handler| self.handlers.contains(handler)) else {
            return Ok(());
        };
        let (site, role) = (moment.site, role_of(moment.event));
        self.call(handler, view::event(moment), |message| match message {
            Some(text) => out.report_as(site, role, Rc::from(text)),
            None => out.report(site, role),
        })
    }

    fn blames(&self, lost: &LostStore) -> Option<(SiteId, Role)> {
        self.handlers.contains(&"lost").then_some((lost.site, Role::Store))
    }

    fn lost(&mut self, lost: &LostStore, out: &mut Sink<'_>) -> Result<(), RuleError> {
        if !self.handlers.contains(&"lost") {
            return Ok(());
        }
        let site = lost.site;
        self.call("lost", view::lost(lost), |message| match message {
            Some(text) => out.report_as(site, Role::Store, Rc::from(text)),
            None => out.report(site, Role::Store),
        })
    }
}
