//! `fencepost demo`: checks a small key-value store with a bug that its tests do not find, from its source to the repaired program.

use std::env;
use std::fmt::Display;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use clap::Args;
use evidence::bundle::FOLDER;

use crate::exit::Exit;
use crate::render;

const EXAMPLES: &str = "\
Examples:
  fencepost demo                       in fencepost-demo/
  fencepost demo --folder /tmp/demo

It needs a C compiler, and nothing else. Everything that it makes is in the folder: read kv.c,
change it, check it again.";

/// The program that is shown; it is also what the README is about.
const SOURCE: &str = include_str!("../../../../targets/demo/kv.c");

/// Compilers, if CC names none.
const COMPILERS: [&str; 3] = ["cc", "gcc", "clang"];

/// Watch Fencepost find a bug in a bundled key-value store.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Demo {
    /// Where to put the program, its pool and the report.
    #[arg(long, value_name = "FOLDER", default_value = "fencepost-demo")]
    folder: PathBuf,
}

/// Why the demonstration ended.
enum End {
    /// Something is missing here.
    Usage(String, &'static str),
    /// A step did not go as it should.
    Failed(String),
    Printing(io::Error),
}

impl From<io::Error> for End {
    fn from(error: io::Error) -> End {
        End::Printing(error)
    }
}

impl Demo {
    pub fn run(&self) -> Exit {
        match self.show() {
            Ok(()) => Exit::Clean,
            Err(End::Usage(text, advice)) => {
                render::error(text);
                render::help(advice);
                Exit::Usage
            }
            Err(End::Failed(text)) => {
                render::error(text);
                render::help("`fencepost doctor` says what this machine allows");
                Exit::TargetFailed
            }
            Err(End::Printing(error)) => render::ended(Err(error)),
        }
    }

    fn show(&self) -> Result<(), End> {
        let stage = DemoFolder::new(&self.folder)?;
        let named = self.folder.display();
        say(format_args!(
            "{named}/kv.c is a small key-value store on persistent memory. It passes its own test, and what it"
        ))?;
        say("leaves is in order:")?;
        stage.step("./kv", &["test.pool", "demo"], 0)?;
        stage.step("./kv", &["test.pool", "verify"], 0)?;

        say(
            "\nFencepost records the same run, pulls the plug everywhere in it, and lets the store verify what is left:",
        )?;
        let recover = "./kv kv.pool verify";
        let check = ["check", "--recover", recover, "--html", "report.html", "--", "./kv", "kv.pool", "demo"];
        stage.step("fencepost", &check, 1)?;
        let id = stage.finding()?;
        say("\nYou can reproduce the crash at any time, on the uninstrumented program (fencepost debug: under gdb):")?;
        stage.step("fencepost", &["replay", &id], 1)?;

        say("\nThe repaired store, built with -DREPAIRED, survives every crash:")?;
        let recover = "./kv-repaired repaired.pool verify";
        stage.step("fencepost", &["check", "--recover", recover, "--", "./kv-repaired", "repaired.pool", "demo"], 0)?;

        say(format_args!("\nThe report: {named}/report.html"))?;
        say(format_args!("The bug:    the lines that it names, in {named}/kv.c"))?;
        say("Now yours:  fencepost check -- ./your-program its arguments")?;
        Ok(())
    }
}

fn say(text: impl Display) -> Result<(), End> {
    Ok(render::result(text)?)
}

/// The folder with the two programs.
struct DemoFolder {
    folder: PathBuf,
    fencepost: PathBuf,
}

impl DemoFolder {
    fn new(folder: &Path) -> Result<DemoFolder, End> {
        let advice = "name another with --folder";
        let cannot = |error: io::Error| End::Usage(format!("cannot write to {}: {error}", folder.display()), advice);
        let source = folder.join("kv.c");
        // Whoever has changed the program keeps it.
        if fs::read_to_string(&source).is_ok_and(|text| text != SOURCE) {
            return Err(End::Usage(format!("{} is there already, and has been changed", source.display()), advice));
        }
        fs::create_dir_all(folder).map_err(cannot)?;
        for old in ["test.pool", "kv.pool", "repaired.pool"] {
            let _ = fs::remove_file(folder.join(old));
        }
        let _ = fs::remove_dir_all(folder.join(FOLDER));
        fs::write(&source, SOURCE).map_err(cannot)?;
        let stage = DemoFolder {
            folder: fs::canonicalize(folder).map_err(cannot)?,
            fencepost: env::current_exe()
                .map_err(|error| End::Failed(format!("cannot find fencepost itself: {error}")))?,
        };
        stage.compile(&[], "kv")?;
        stage.compile(&["-DREPAIRED"], "kv-repaired")?;
        Ok(stage)
    }

    fn compile(&self, flags: &[&str], to: &str) -> Result<(), End> {
        let named = env::var("CC").ok().filter(|line| !line.trim().is_empty());
        let compilers = named.map_or_else(|| COMPILERS.map(str::to_owned).to_vec(), |line| vec![line]);
        for compiler in &compilers {
            // CC may have arguments, as make allows.
            let mut words = compiler.split_whitespace();
            let mut command = Command::new(words.next().unwrap_or_default());
            command.args(words).args(["-O1", "-g"]).args(flags).args(["kv.c", "-o", to]).current_dir(&self.folder);
            match command.status() {
                Ok(status) if status.success() => return Ok(()),
                Ok(status) => {
                    return Err(End::Failed(format!(
                        "`{compiler}` cannot compile kv.c ({status}); it needs the C library's headers (Debian, Ubuntu: \
                         apt-get install libc6-dev), and CC names another compiler"
                    )));
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(End::Failed(format!("cannot run `{compiler}`: {error}"))),
            }
        }
        let tried: Vec<String> = compilers.iter().map(|name| format!("`{name}`")).collect();
        let advice = "install one (Debian, Ubuntu: apt-get install gcc libc6-dev), or name it with CC";
        Err(End::Usage(format!("there is no C compiler: {} not found", tried.join(", ")), advice))
    }

    /// Shows a command and runs it; it must end with `code`.
    fn step(&self, program: &str, arguments: &[&str], code: i32) -> Result<(), End> {
        let line: Vec<String> = [program].iter().chain(arguments).map(|word| quoted(word)).collect();
        say(format_args!("    $ {}", line.join(" ")))?;
        let mut command =
            if program == "fencepost" { self.plain_fencepost() } else { Command::new(self.folder.join(program)) };
        let status = command.args(arguments).current_dir(&self.folder).status();
        let ended = |status: ExitStatus| status.code() == Some(code);
        match status {
            Ok(status) if ended(status) => Ok(()),
            Ok(status) => Err(End::Failed(format!("this should have ended with exit code {code}, not with {status}"))),
            Err(error) => Err(End::Failed(format!("cannot run `{program}`: {error}"))),
        }
    }

    /// Without what the user has set for other programs.
    fn plain_fencepost(&self) -> Command {
        let mut command = Command::new(&self.fencepost);
        for (name, _) in env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"FENCEPOST_")) {
            command.env_remove(name);
        }
        command.env("FENCEPOST_CONFIG", "/dev/null");
        command
    }

    /// The id of what was found.
    fn finding(&self) -> Result<String, End> {
        let bundles = fs::read_dir(self.folder.join(FOLDER)).into_iter().flatten().flatten();
        let folders = bundles.filter(|bundle| bundle.path().is_dir());
        let first = folders.map(|bundle| bundle.file_name().to_string_lossy().into_owned()).min();
        first.ok_or_else(|| End::Failed("the check has left no finding to show again".to_owned()))
    }
}

/// As a shell wants it.
fn quoted(word: &str) -> String {
    if word.contains(' ') { format!("'{word}'") } else { word.to_owned() }
}
