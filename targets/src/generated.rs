//! Programs with any number of independent bugs, made on the spot: a row of slots, each filled by a function of its own, and a check of all
//! slots that complains about the first wrong one.

use std::fmt::Write as _;

/// What is wrong with a slot of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    None,
    /// Its value is never flushed.
    NeverFlushed,
    /// Its value is flushed, but no fence comes before the mark that it is valid.
    NoFence,
    /// The mark is durable before the value is stored.
    MarkFirst,
    /// Two words that must be equal, made durable one after the other.
    Halves,
}

impl Bug {
    pub const ALL: [Bug; 5] = [Bug::NeverFlushed, Bug::NoFence, Bug::MarkFirst, Bug::Halves, Bug::None];
}

/// The function that fills a slot.
pub fn function(slot: usize) -> String {
    format!("fill_{}", name(slot))
}

/// What recovery says of a slot that is wrong.
pub fn complaint(slot: usize) -> String {
    format!("slot {} is wrong", name(slot))
}

/// Numbers are taken out of complaints, so slots are named by letters.
fn name(slot: usize) -> String {
    let letter = |n: usize| char::from(b'a' + n as u8);
    format!("{}{}", letter(slot / 26), letter(slot % 26))
}

/// A program in C: `PROG POOL` fills the slots, `PROG POOL check` looks at them. All functions are on lines of their own that do not move
/// when a bug is put in.
pub fn source(bugs: &[Bug]) -> String {
    let mut text = String::from(
        "#include <fcntl.h>\n#include <immintrin.h>\n#include <stdint.h>\n#include <stdio.h>\n#include <sys/mman.h>\n#include <unistd.h>\n\
         typedef struct { uint64_t v, pad[7], ok, pad2[7]; } slot;\nstatic slot *s;\n",
    );
    for (number, bug) in bugs.iter().enumerate() {
        let _ = writeln!(text, "__attribute__((noinline)) static void {}(slot *s) {{", function(number));
        for step in steps(*bug) {
            let _ = writeln!(text, "    {step}");
        }
        text.push_str("}\n");
    }
    text.push_str("static int check(void) {\n");
    for (number, bug) in bugs.iter().enumerate() {
        // Halves: one without the other is wrong, whichever it is.
        let wrong = match bug {
            Bug::Halves => format!("(s[{number}].v == 7) != (s[{number}].ok == 8)"),
            _ => format!("s[{number}].ok == 7 && s[{number}].v != 7"),
        };
        let _ = writeln!(text, "    if ({wrong}) {{ fprintf(stderr, \"{}\\n\"); return 1; }}", complaint(number));
    }
    text.push_str(
        "    return 0;\n}\nint main(int argc, char **argv) {\n    int fd = open(argv[1], O_RDWR | O_CREAT, 0666);\n\
         if (fd < 0 || ftruncate(fd, 65536)) return 9;\n    s = mmap(0, 65536, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);\n\
         if (argc > 2) return check();\n",
    );
    for number in 0..bugs.len() {
        let _ = writeln!(text, "    {}(s + {number});", function(number));
    }
    text.push_str("    return 0;\n}\n");
    text
}

fn steps(bug: Bug) -> [&'static str; 6] {
    match bug {
        Bug::None => {
            ["s->v = 7;", "_mm_clwb(&s->v);", "_mm_sfence();", "s->ok = 7;", "_mm_clwb(&s->ok);", "_mm_sfence();"]
        }
        Bug::NeverFlushed => ["s->v = 7;", "", "", "s->ok = 7;", "_mm_clwb(&s->ok);", "_mm_sfence();"],
        Bug::NoFence => ["s->v = 7;", "_mm_clwb(&s->v);", "", "s->ok = 7;", "_mm_clwb(&s->ok);", "_mm_sfence();"],
        Bug::MarkFirst => {
            ["s->ok = 7;", "_mm_clwb(&s->ok);", "_mm_sfence();", "s->v = 7;", "_mm_clwb(&s->v);", "_mm_sfence();"]
        }
        Bug::Halves => {
            ["s->v = 7;", "_mm_clwb(&s->v);", "_mm_sfence();", "s->ok = 8;", "_mm_clwb(&s->ok);", "_mm_sfence();"]
        }
    }
}
