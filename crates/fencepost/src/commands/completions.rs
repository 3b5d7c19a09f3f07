//! `fencepost completions`: prints the script with which a shell completes the command line.

use std::io::{self, Write};

use clap::{Args, ValueEnum};
use clap_complete::generate;

use crate::exit::Exit;
use crate::help;
use crate::render;

const EXAMPLES: &str = "\
Examples:
  source <(fencepost completions bash)
  fencepost completions zsh > ~/.zfunc/_fencepost
  fencepost completions fish > ~/.config/fish/completions/fencepost.fish";

/// Print the completions for a shell.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Completions {
    /// The shell.
    #[arg(value_enum, value_name = "SHELL")]
    shell: Shell,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
}

/// The ids of the findings in the folder of bundles: a script cannot know them beforehand.
const IDS: &str = "ls -1 .fencepost 2>/dev/null | grep -E '^[0-9a-f]{8}$'";

impl Shell {
    /// The script, and what completes the ids of findings for `replay` and `debug`.
    fn with_findings(self, script: &str) -> String {
        match self {
            Shell::Bash => format!(
                "{script}\n_fencepost_findings() {{\n    local word=\"${{COMP_WORDS[COMP_CWORD]}}\"\n    \
                 case \"${{COMP_WORDS[1]}}:${{COMP_WORDS[COMP_CWORD-1]}}:$word\" in\n        *:--*:*|*:-*) ;;\n        \
                 replay:*|debug:*)\n            COMPREPLY=( $(compgen -W \"$({IDS})\" -- \"$word\") )\n            \
                 return ;;\n    esac\n    _fencepost \"$@\"\n}}\ncomplete -F _fencepost_findings -o bashdefault -o default fencepost\n"
            ),
            Shell::Zsh => {
                let id = |line: &str| match line.contains("':id -- ") {
                    true => line.replace(":_default'", ":_fencepost_findings'"),
                    false => line.to_owned(),
                };
                let function = format!(
                    "_fencepost_findings() {{\n    local -a ids\n    ids=(${{(f)\"$({IDS})\"}})\n    compadd -a ids\n}}"
                );
                let mut lines: Vec<String> = script.lines().map(id).collect();
                // The first line is for the shell.
                lines.insert(1, function);
                lines.join("\n") + "\n"
            }
            Shell::Fish => format!(
                "{script}complete -c fencepost -n \"__fish_seen_subcommand_from replay debug\" -f -a \"({IDS})\"\n"
            ),
        }
    }
}

impl Completions {
    pub fn run(&self) -> Exit {
        let generator = match self.shell {
            Shell::Bash => clap_complete::Shell::Bash,
            Shell::Zsh => clap_complete::Shell::Zsh,
            Shell::Fish => clap_complete::Shell::Fish,
        };
        // Into memory first: the generator panics if it cannot write, as to a pipe that was closed.
        let mut script = Vec::new();
        generate(generator, &mut help::command(), "fencepost", &mut script);
        let script = self.shell.with_findings(&String::from_utf8_lossy(&script));
        let mut out = io::stdout().lock();
        render::ended(out.write_all(script.as_bytes()).and_then(|()| out.flush()))
    }
}
