//! What following the input costs: one path, beside the same run natively.

use std::fs::File;
use std::process::{Command, Stdio};

use anyhow::Context as _;
use targets::crash::{TWIN, rare};

use super::explored::{Subject, command, told};
use super::{Context, search};
use crate::bench::measure;
use crate::build;

/// Native runs are short: the sum of so many is measured.
const NATIVE: u32 = 10;

pub fn run(context: &Context) -> anyhow::Result<()> {
    println!("\n## What following the input costs\n");
    println!(
        "| program | instructions | followed | million per CPU second | native CPU | CPU of one path | times | memory | queries/s | answered by |"
    );
    println!("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |");
    for subject in subjects()?.iter().filter(|subject| context.wants(&subject.name)) {
        let mut one = command(context, subject, "one", &["--runs", "1"])?;
        let folder = one.get_current_dir().map(ToOwned::to_owned).unwrap_or_default();
        let output = folder.join("told");
        one.stdout(File::create(&output)?).stderr(Stdio::null());
        let cost = measure::run(&mut one)?;
        let text =
            std::process::Output { stdout: std::fs::read(&output)?, stderr: Vec::new(), status: Default::default() };
        let explored = told(&one, &text)?;
        let native = native(subject, &folder)?;
        let mut many = command(context, subject, "many", &[])?;
        let output = many.output().context("fencepost explore")?;
        let searched = told(&many, &output)?;
        let queries = searched.summary["queries"].as_object().cloned().unwrap_or_default();
        let all: f64 = queries.values().filter_map(serde_json::Value::as_f64).sum();
        let mut shares: Vec<(String, f64)> =
            queries.iter().map(|(stage, n)| (stage.clone(), n.as_f64().unwrap_or(0.0))).collect();
        shares.sort_by(|a, b| b.1.total_cmp(&a.1));
        let shares: Vec<String> = shares.iter().map(|(stage, n)| format!("{stage} {:.0} %", n * 100.0 / all)).collect();
        let solving = searched.number("solving_seconds").max(1e-9);
        println!(
            "| {} | {} | {} | {:.2} | {:.1} ms | {:.2} s | {:.0} | {} MiB | {:.0} | {} |",
            subject.name,
            explored.number("instructions"),
            explored.number("followed"),
            explored.number("instructions") / cost.cpu.as_secs_f64().max(1e-9) / 1e6,
            native * 1e3,
            cost.cpu.as_secs_f64(),
            cost.cpu.as_secs_f64() / native,
            cost.peak_kib / 1024,
            all / solving,
            shares.join(", ")
        );
    }
    Ok(())
}

/// CPU time of the same run without Fencepost; a server's is that of its driver, too.
fn native(subject: &Subject, folder: &std::path::Path) -> anyhow::Result<f64> {
    let mut costs = Vec::new();
    for _ in 0..NATIVE {
        let _ = std::fs::remove_file(folder.join("pool"));
        let shell = std::fs::read_dir(folder.join("fencepost-explore"))?.flatten().map(|entry| entry.path());
        let shell = shell.filter(|path| path.extension().is_some_and(|end| end == "sh")).min();
        let mut run = Command::new("sh");
        run.current_dir(folder).arg(shell.with_context(|| format!("no path of {} was kept", subject.name))?);
        run.env("PMEM_IS_PMEM_FORCE", "1").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        costs.push(measure::run(&mut run)?.cpu);
    }
    Ok(measure::median(costs).as_secs_f64())
}

/// The maps, a shell and a server.
fn subjects() -> anyhow::Result<Vec<Subject>> {
    let mut subjects = search::maps()?;
    subjects.push(Subject {
        name: "sqlite3".to_owned(),
        input: "create table t(a,b);\ninsert into t values(11,'x');\nselect * from t where a=11;\n".to_owned(),
        options: ["--seed", "input"].map(str::to_owned).to_vec(),
        command: ["sqlite3", "database"].map(Into::into).to_vec(),
        example: None,
    });
    let folder = build::targets_folder()?.join("fuzz");
    for target in rare()? {
        let program = target.build(TWIN, &folder)?;
        let command = target.run_command(&program, std::path::Path::new("pool"));
        if command.iter().any(|word| word == "{socket}") {
            subjects.push(Subject {
                name: format!("{} (server)", target.name),
                input: "set 11 22\nget 11\nset 33 44\n".to_owned(),
                options: ["--ops", "input", "--op-socket", "{socket}"].map(str::to_owned).to_vec(),
                command: command.into_iter().map(Into::into).collect(),
                example: None,
            });
        }
    }
    Ok(subjects)
}
