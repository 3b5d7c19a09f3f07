//! How help is laid out: `--help` shows the options that matter most, in groups; `--help-all` and the manual page show every one.

use clap::{Arg, ArgAction, Command, CommandFactory};

use crate::cli::Cli;

/// The options that `--help` shows for a command, by group.
struct Layout {
    command: &'static str,
    shown: &'static [(&'static str, &'static [&'static str])],
}

const LAYOUTS: [Layout; 7] = [
    Layout {
        command: "record",
        shown: &[("Recording", &["pm", "watch", "operations", "infer"]), ("Output", &["output", "exit-with-target"])],
    },
    Layout {
        command: "check",
        shown: &[
            ("Workload", &["pm"]),
            ("Operations", &["ops", "readback", "grammar"]),
            ("Recovery", &["recover", "checker"]),
            ("Search", &["budget", "strategy"]),
            ("Output", &["html", "message-format"]),
        ],
    },
    Layout {
        command: "lint",
        shown: &[
            ("Workload", &["pm"]),
            ("Rules", &["allow", "deny", "rules"]),
            ("Output", &["message-format"]),
            ("Exit code", &["fail-on", "suppressions", "baseline"]),
        ],
    },
    Layout {
        command: "crash",
        shown: &[
            ("Operations", &["ops", "grammar"]),
            ("Recovery", &["recover", "checker"]),
            ("Search", &["budget", "strategy", "shard", "merge"]),
            ("Output", &["html", "message-format"]),
        ],
    },
    Layout {
        command: "fuzz",
        shown: &[
            ("Workload", &["grammar", "ops", "seeds", "dict"]),
            ("Recovery", &["recover"]),
            ("Search", &["time", "jobs", "check-share"]),
            ("Output", &["out", "html", "message-format"]),
        ],
    },
    Layout {
        command: "explore",
        shown: &[
            ("Workload", &["symbolic", "seed", "ops", "op-socket"]),
            ("Search", &["reach", "time", "solver"]),
            ("Recovery", &["check", "recover"]),
            ("Output", &["output", "message-format"]),
        ],
    },
    Layout {
        command: "fs check",
        shown: &[
            ("File system", &["fuse", "kernel", "mkfs", "needs-fsync"]),
            ("Workload", &["ace", "ops", "fuzz"]),
            ("Search", &["budget", "strategy"]),
            ("Output", &["html", "message-format"]),
        ],
    },
];

/// The groups of the options that only `--help-all` shows. The rules' and the exit code's options name theirs themselves.
const GROUPS: [(&str, &[&str]); 7] = [
    (
        "File system",
        &[
            "preload",
            "env",
            "no-growth",
            "fs",
            "atomic-writes",
            "modules",
            "module",
            "mount-options",
            "size",
            "qemu",
            "debug-info",
            "trace",
        ],
    ),
    ("Recording", &["loads", "fresh", "pool-from", "real-time", "real-random", "real-tsc", "backend", "follow"]),
    ("Workload", &["pm", "arguments", "bytes", "batch"]),
    (
        "Operations",
        &[
            "ops",
            "readback",
            "grammar",
            "count",
            "seed",
            "length",
            "operations-after",
            "readback-queries",
            "readback-order",
            "readback-separator",
            "after-setup",
            "skip-operations",
            "window-separator",
            "no-select",
            "op-begin",
            "op-end",
            "op-marks",
            "resume",
            "without",
            "answers",
            "op-command",
            "op-socket",
            "op-protocol",
        ],
    ),
    (
        "Recovery",
        &["recover", "checker", "files", "exit-ok", "fail-pattern", "timeout", "memory", "processes", "engine"],
    ),
    (
        "Search",
        &[
            "budget",
            "strategy",
            "every",
            "occurrences",
            "points",
            "creation",
            "model",
            "strict-fences",
            "jobs",
            "no-equivalence",
            "again",
            "require-complete",
            "shard",
            "journal",
            "no-journal",
            "merge",
            "no-lint",
            "executions",
            "slice",
            "until-found",
            "check-budget",
            "search",
            "runs",
            "random-seed",
            "solve",
            "query-limit",
            "run-limit",
        ],
    ),
    ("Output", &["bundles", "html", "progress", "output", "message-format", "quiet", "exit-with-target"]),
];

const GLOBAL: &str = "Global options";

/// The whole command line.
pub fn command() -> Command {
    arrange(Cli::command())
}

/// Groups the options, and adds those that print help and the version: a configuration cannot set them.
pub fn arrange(root: Command) -> Command {
    let global = |arg: Arg| arg.help_heading(GLOBAL).hide_short_help(true);
    laid_out(root.mut_arg("color", global).mut_arg("config", global), "")
}

fn laid_out(command: Command, name: &str) -> Command {
    let shown = LAYOUTS.iter().find(|layout| layout.command == name).map(|layout| layout.shown);
    let command = command
        .mut_args(|arg| match shown {
            Some(shown) => grouped(arg, shown),
            None => arg,
        })
        .mut_subcommands(|sub| {
            let name = format!("{name} {}", sub.get_name());
            laid_out(sub, name.trim_start())
        });
    let option =
        |name: &'static str, action, help| Arg::new(name).long(name).action(action).help(help).help_heading(GLOBAL);
    command.disable_help_flag(true).disable_version_flag(true).args([
        option("help", ArgAction::HelpShort, "Print this help").short('h'),
        option("help-all", ArgAction::HelpLong, "Print help on every option"),
        option("version", ArgAction::Version, "Print the version").short('V').hide_short_help(!name.is_empty()),
    ])
}

/// An option where it belongs; a positional argument and a hidden option as they are.
fn grouped(arg: Arg, shown: &[(&'static str, &[&str])]) -> Arg {
    let Some(long) = arg.get_long().map(str::to_owned) else { return arg };
    let holds = |(_, options): &&(&'static str, &[&str])| options.contains(&long.as_str());
    if let Some((heading, _)) = shown.iter().find(holds) {
        return arg.help_heading(*heading);
    }
    let arg = arg.hide_short_help(true);
    match GROUPS.iter().find(holds) {
        Some((heading, _)) => arg.help_heading(*heading),
        None => arg,
    }
}
