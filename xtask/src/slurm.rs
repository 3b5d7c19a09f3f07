//! `cargo xtask slurm`: a Slurm of one node on the loopback, made for this, and a campaign of three workers in it. Needs root.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use clap::Args;
use targets::crash::{CrashTarget, Variant, with_operations};

use crate::build;
use crate::scratch::Scratch;

/// Longer, and something hangs.
const LIMIT: Duration = Duration::from_secs(300);

#[derive(Args, Debug)]
pub struct SlurmTest {
    /// Use this executable instead of building Fencepost.
    #[arg(long, value_name = "FILE")]
    fencepost: Option<PathBuf>,
}

/// A daemon in the foreground.
struct Daemon(Child);

impl Daemon {
    fn start(program: &str, args: &[String], conf: &Path, log: &Path) -> anyhow::Result<Daemon> {
        let log = fs::File::create(log)?;
        let mut command = Command::new(program);
        command.args(args).env("SLURM_CONF", conf).stdin(Stdio::null());
        command.stdout(log.try_clone()?).stderr(log);
        Ok(Daemon(command.spawn().with_context(|| format!("cannot run {program}"))?))
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // SAFETY: the process is a child that was not waited for: its number is its own.
        unsafe { libc::kill(self.0.id() as i32, libc::SIGTERM) };
        let _ = self.0.wait();
    }
}

impl SlurmTest {
    pub fn run(&self) -> anyhow::Result<ExitCode> {
        let needed = Command::new(".ci/need").args(["slurm-wlm", "munge", "redis-server"]).status()?;
        ensure!(needed.success(), "slurm-wlm, munge and redis-server are needed");
        let fencepost = match &self.fencepost {
            Some(path) => fs::canonicalize(path).with_context(|| path.display().to_string())?,
            None => build::fencepost()?,
        };
        let scratch = Scratch::new("slurm")?;
        let cluster = Cluster::start(scratch.path())?;
        let folder = scratch.fresh("campaign")?;
        let program = program()?;
        let pool = folder.join("pool");
        let check = program.arguments(&pool);
        let here = Command::new(&fencepost).arg("check").args(&check).current_dir(&folder).output()?;
        let _ = fs::remove_file(&pool);
        let mut submit = Command::new(&fencepost);
        submit.args(["fleet", "slurm", "--nodes", "1", "--workers", "3", "--jobs", "1", "--output=job.out"]);
        submit.args(["--error=job.err", "--", "check"]).args(&check).current_dir(&folder);
        let submitted = submit.env("SLURM_CONF", &cluster.conf).output()?;
        print!("{}{}", String::from_utf8_lossy(&submitted.stdout), String::from_utf8_lossy(&submitted.stderr));
        ensure!(submitted.status.success(), "the job was not submitted");
        cluster.wait()?;
        let (out, err) = (fs::read_to_string(folder.join("job.out"))?, fs::read_to_string(folder.join("job.err"))?);
        let findings = |text: &str| -> Vec<String> {
            text.lines().filter(|line| line.contains("\"type\":\"finding\"")).map(str::to_owned).collect()
        };
        let expected = findings(&String::from_utf8_lossy(&here.stdout));
        ensure!(!expected.is_empty(), "the local run finds nothing: {}", String::from_utf8_lossy(&here.stderr));
        ensure!(findings(&out) == expected, "the job found something else:\n{out}\n{err}");
        ensure!(err.matches("is over").count() == 3, "three workers work until the end:\n{err}");
        println!("{} findings with three workers, as on one machine", expected.len());
        Ok(ExitCode::SUCCESS)
    }
}

/// A program with a bug.
struct Program {
    target: CrashTarget,
    built: PathBuf,
}

fn program() -> anyhow::Result<Program> {
    let target = with_operations()?.into_iter().find(|target| target.name == "c/undo").context("c/undo")?;
    let built = target.build(Variant(1), &build::targets_folder()?.join("fleet"))?;
    Ok(Program { target, built })
}

impl Program {
    fn arguments(&self, pool: &Path) -> Vec<String> {
        let own = ["--message-format", "json", "--budget", "none", "--progress", "never", "--no-select", "--jobs", "1"];
        let mut arguments: Vec<String> = own.map(str::to_owned).into();
        let grammar = self.target.grammar.iter().map(|grammar| format!("--grammar={}", grammar.display()));
        arguments.extend(grammar.chain(["--count=12".to_owned(), "--".to_owned()]));
        arguments.extend(self.target.run_command(&self.built, pool));
        arguments
    }
}

struct Cluster {
    conf: PathBuf,
    /// The last one first.
    _daemons: Vec<Daemon>,
}

impl Cluster {
    fn start(folder: &Path) -> anyhow::Result<Cluster> {
        let file = |name: &str| folder.join(name).display().to_string();
        let hostname = fs::read_to_string("/proc/sys/kernel/hostname")?.trim().to_owned();
        fs::write(file("munge.key"), random_bytes(128)?)?;
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(file("munge.key"), fs::Permissions::from_mode(0o400))?;
        fs::set_permissions(folder, fs::Permissions::from_mode(0o755))?;
        let port = || anyhow::Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port());
        let conf = folder.join("slurm.conf");
        fs::write(
            &conf,
            format!(
                "ClusterName=fencepost\nSlurmctldHost={hostname}(127.0.0.1)\nAuthType=auth/munge\nAuthInfo=socket={socket}\n\
                 SlurmUser=root\nSlurmdUser=root\nSlurmctldPort={ctld}\nSlurmdPort={slurmd}\n\
                 CommunicationParameters=NoCtldInAddrAny,NoInAddrAny\nStateSaveLocation={state}\nSlurmdSpoolDir={spool}\n\
                 SlurmctldPidFile={ctld_pid}\nSlurmdPidFile={slurmd_pid}\nProctrackType=proctrack/linuxproc\n\
                 TaskPlugin=task/none\nMpiDefault=none\nReturnToService=2\nSlurmdParameters=config_overrides\n\
                 SelectType=select/linear\nJobAcctGatherType=jobacct_gather/none\n\
                 NodeName=node1 NodeHostname={hostname} NodeAddr=127.0.0.1 CPUs=4 State=UNKNOWN\n\
                 PartitionName=all Nodes=node1 Default=YES MaxTime=INFINITE State=UP\n",
                socket = file("munge.socket"),
                ctld = port()?,
                slurmd = port()?,
                state = file("state"),
                spool = file("spool"),
                ctld_pid = file("slurmctld.pid"),
                slurmd_pid = file("slurmd.pid"),
            ),
        )?;
        fs::create_dir_all(file("state"))?;
        fs::create_dir_all(file("spool"))?;
        let munge = ["--foreground", "--force"].map(str::to_owned).into_iter().chain([
            format!("--key-file={}", file("munge.key")),
            format!("--socket={}", file("munge.socket")),
            format!("--pid-file={}", file("munge.pid")),
            format!("--seed-file={}", file("munge.seed")),
        ]);
        let munge: Vec<String> = munge.collect();
        let words = |line: &str| -> Vec<String> { line.split(' ').map(str::to_owned).collect() };
        let munged = Daemon::start("munged", &munge, &conf, &folder.join("munged.log"))?;
        let begun = Instant::now();
        while !folder.join("munge.socket").exists() {
            ensure!(begun.elapsed() < LIMIT, "munged does not start");
            std::thread::sleep(Duration::from_millis(50));
        }
        let ctld = Daemon::start("slurmctld", &words("-D"), &conf, &folder.join("slurmctld.log"))?;
        let slurmd = Daemon::start("slurmd", &words("-D -N node1"), &conf, &folder.join("slurmd.log"))?;
        let cluster = Cluster { conf, _daemons: vec![slurmd, ctld, munged] };
        while !cluster.says("sinfo", &["-h", "-o", "%t"])?.contains("idle") {
            if begun.elapsed() > LIMIT {
                let log = |name: &str| fs::read_to_string(folder.join(name)).unwrap_or_default();
                bail!("the node does not come:\n{}\n{}", log("slurmctld.log"), log("slurmd.log"));
            }
            std::thread::sleep(Duration::from_millis(200));
        }
        Ok(cluster)
    }

    fn says(&self, program: &str, args: &[&str]) -> anyhow::Result<String> {
        let said = Command::new(program).args(args).env("SLURM_CONF", &self.conf).output()?;
        Ok(String::from_utf8_lossy(&said.stdout).into_owned())
    }

    /// Until no job is left.
    fn wait(&self) -> anyhow::Result<()> {
        let begun = Instant::now();
        while !self.says("squeue", &["-h"])?.trim().is_empty() {
            ensure!(begun.elapsed() < LIMIT, "the job does not end:\n{}", self.says("squeue", &[])?);
            std::thread::sleep(Duration::from_millis(200));
        }
        Ok(())
    }
}

fn random_bytes(count: usize) -> anyhow::Result<Vec<u8>> {
    use std::io::Read;
    let mut bytes = vec![0; count];
    fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}
