//! A recording as a library call: the program gets its surroundings from the request, and ours stay as they are.

use std::fs;
use std::io::{Read, Seek};
use std::process::Command;

use record::request::{Backend, Request, Stream};
use record::stop::StopRequest;
use supervise::memory_file;
use trace::TraceReader;
use trace::event::ExitStatus;

const PROGRAM: &str = r#"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static void say(int to, const char *text) { (void)!write(to, text, strlen(text)); }
int main(void)
{
	char line[16] = "", dir[4096];
	(void)!read(0, line, sizeof line - 1);
	say(1, getenv("GREETING"));
	say(1, " ");
	say(1, line);
	say(1, getcwd(dir, sizeof dir));
	say(1, "\n");
	say(2, "complaint\n");
	return 7;
}
"#;

#[test]
fn streams_environment_and_directory_are_those_of_the_request() {
    let folder = tempfile::tempdir().unwrap();
    let work = folder.path().canonicalize().unwrap().join("work");
    fs::create_dir(&work).unwrap();
    let program = folder.path().join("program");
    fs::write(folder.path().join("program.c"), PROGRAM).unwrap();
    // Static: the reference takes long for a dynamic linker.
    let mut cc = Command::new("cc");
    cc.args(["-O1", "-static", "-o"]).arg(&program).arg(folder.path().join("program.c"));
    assert!(cc.status().expect("cc is installed").success());
    for backend in [Backend::Probe, Backend::Step] {
        if backend == Backend::Probe && !supervise::probe::is_embedded() {
            continue;
        }
        let trace = folder.path().join("trace");
        let mut request = Request::new([&program], &trace);
        let [mut answers, mut complaints] = [c"answers", c"complaints"].map(|name| memory_file::create(name).unwrap());
        request.backend = backend;
        request.stdin = Stream::File(memory_file::holding(c"input", b"world\n").unwrap());
        request.stdout = Stream::File(answers.try_clone().unwrap());
        request.stderr = Stream::File(complaints.try_clone().unwrap());
        request.dir = Some(work.clone());
        // The last one counts.
        for greeting in ["hi", "hello"] {
            request.env.push(("GREETING".into(), greeting.into()));
        }
        let recording = request.run(&StopRequest::new()).unwrap();
        assert_eq!(recording.target, ExitStatus::Code(7), "{backend:?}");
        let texts = [&mut answers, &mut complaints].map(|file| {
            let mut text = String::new();
            file.rewind().and_then(|()| file.read_to_string(&mut text)).unwrap();
            text
        });
        assert_eq!(texts[0], format!("hello world\n{}\n", work.display()), "{backend:?}");
        assert_eq!(texts[1], "complaint\n", "{backend:?}");
        let meta = &TraceReader::open(&trace).unwrap().tables().meta.clone();
        assert_eq!((meta.cwd.as_str(), meta.recorder.as_str()), (work.to_str().unwrap(), backend.name()));
    }
    assert!(std::env::var_os("GREETING").is_none());
}

#[test]
fn a_request_that_cannot_be_met_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let failed = Request::new(["./no-such-program"], folder.path().join("trace")).run(&StopRequest::new()).unwrap_err();
    assert!(failed.error.is_usage() && failed.salvaged.is_none(), "{failed}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}
