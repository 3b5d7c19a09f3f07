//! The rules that are built in, and which of all rules are switched on.

use std::collections::BTreeMap;

use finding::severity::{Level, UnknownSeverity};

use crate::lint::Active;
use crate::rule::Rule;
use crate::rules::{
    accidental_fence::AccidentalFence, clean_flush::CleanFlush, clflush::Clflush, dirty_overwrite::DirtyOverwrite,
    flush_not_fenced::FlushNotFenced, large_copy::LargeCopy, needless_mfence::NeedlessMfence,
    nt_not_fenced::NtNotFenced, nt_only_flush::NtOnlyFlush, open_transaction::OpenTransaction,
    redundant_logging::RedundantLogging, repeated_flush::RepeatedFlush, store_not_durable::StoreNotDurable,
    transient_data::TransientData, unlogged_store::UnloggedStore, unordered_lines::UnorderedLines,
    useless_fence::UselessFence, volatile_flush::VolatileFlush, without_transaction::WithoutTransaction,
};

/// Names that rules had before.
const OLD_NAMES: [(&str, &str); 1] = [("transient-data", "never-flushed")];

/// What the user has changed about rules.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    levels: BTreeMap<String, Level>,
    /// `FP0403.types`: the PMDK type numbers whose objects only transactions may change.
    pub transaction_types: Vec<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingError {
    #[error("there is no rule `{0}`; `fencepost explain` lists them")]
    UnknownRule(String),
    #[error("`{0}`: expected RULE=LEVEL, as in FP0301=allow")]
    NotAPair(String),
    #[error("`{setting}`: {source}")]
    Level { setting: String, source: UnknownSeverity },
    #[error("there is no setting `{0}`; there is FP0403.types=NUMBER,...")]
    UnknownSetting(String),
    #[error("`{0}`: type numbers are whole numbers, separated by commas")]
    NotATypeNumber(String),
}

impl Settings {
    /// A rule, by id or name, counts as `level` from now on.
    pub fn level(&mut self, rule: &str, level: Level) {
        self.levels.insert(rule.to_owned(), level);
    }

    /// As [`Settings::level`], from `RULE=LEVEL`.
    pub fn parse_level(&mut self, text: &str) -> Result<(), SettingError> {
        let (rule, level) = text.split_once('=').ok_or_else(|| SettingError::NotAPair(text.to_owned()))?;
        let level = level.parse().map_err(|source| SettingError::Level { setting: text.to_owned(), source })?;
        self.level(rule.trim(), level);
        Ok(())
    }

    /// `RULE.NAME=VALUE`.
    pub fn parse_setting(&mut self, text: &str) -> Result<(), SettingError> {
        match text.split_once('=') {
            Some(("FP0403.types", numbers)) => {
                for number in numbers.split(',') {
                    let bad = |_| SettingError::NotATypeNumber(text.to_owned());
                    self.transaction_types.push(number.trim().parse().map_err(bad)?);
                }
                Ok(())
            }
            _ => Err(SettingError::UnknownSetting(text.to_owned())),
        }
    }

    /// The rules that are on: the built-in ones and `custom`, each at its level.
    pub fn activate(&self, custom: Vec<Box<dyn Rule>>) -> Result<Vec<Active>, SettingError> {
        let mut rules = built_in(self);
        rules.extend(custom);
        let named = |name: &str, rule: &dyn Rule| {
            let name = OLD_NAMES.iter().find(|(old, _)| *old == name).map_or(name, |(_, new)| new);
            rule.info().id == name || rule.info().name == name
        };
        if let Some(unknown) = self.levels.keys().find(|name| !rules.iter().any(|rule| named(name, &**rule))) {
            return Err(SettingError::UnknownRule(unknown.clone()));
        }
        let active = rules.into_iter().filter_map(|rule| {
            let chosen = self.levels.iter().find(|(name, _)| named(name, &*rule)).map(|(_, level)| *level);
            match chosen.unwrap_or(rule.info().level) {
                Level::Allow => None,
                Level::Report(severity) => Some(Active { rule, severity }),
            }
        });
        Ok(active.collect())
    }
}

/// Every built-in rule, by id.
pub fn built_in(settings: &Settings) -> Vec<Box<dyn Rule>> {
    vec![
        Box::new(StoreNotDurable),
        Box::new(FlushNotFenced),
        Box::new(NtNotFenced),
        Box::new(AccidentalFence),
        Box::new(CleanFlush),
        Box::new(VolatileFlush),
        Box::new(NtOnlyFlush),
        Box::new(UselessFence),
        Box::new(NeedlessMfence),
        Box::new(TransientData),
        Box::<DirtyOverwrite>::default(),
        Box::new(RepeatedFlush),
        Box::new(UnorderedLines),
        Box::new(RedundantLogging),
        Box::new(UnloggedStore),
        Box::new(WithoutTransaction::new(settings.transaction_types.clone())),
        Box::new(OpenTransaction),
        Box::new(Clflush),
        Box::<LargeCopy>::default(),
    ]
}

/// The functions that these rules need to see.
pub fn watches(rules: &[Active]) -> Vec<String> {
    let mut watches: Vec<String> = rules.iter().flat_map(|active| active.rule.watches()).collect();
    watches.sort();
    watches.dedup();
    watches
}
