//! What the scripts of the cases find in their folder.

/// Files by name.
pub const INPUTS: [(&str, &str); 18] = [
    ("program.c", include_str!("inputs/program.c")),
    ("program.cpp", include_str!("inputs/program.cpp")),
    ("program.rs", include_str!("inputs/program.rs")),
    ("program.go", include_str!("inputs/program.go")),
    ("program.py", include_str!("inputs/program.py")),
    ("program.js", include_str!("inputs/program.js")),
    ("program.pl", include_str!("inputs/program.pl")),
    ("program.sh", include_str!("inputs/program.sh")),
    ("program.rb", include_str!("inputs/program.rb")),
    ("program.lua", include_str!("inputs/program.lua")),
    ("program.php", include_str!("inputs/program.php")),
    ("Makefile", include_str!("inputs/Makefile")),
    ("git.sh", include_str!("inputs/git.sh")),
    ("memcached.sh", include_str!("inputs/memcached.sh")),
    ("memcached_load.py", include_str!("inputs/memcached_load.py")),
    ("nginx.conf", include_str!("inputs/nginx.conf")),
    ("nginx.sh", include_str!("inputs/nginx.sh")),
    ("redis.sh", include_str!("inputs/redis.sh")),
];

/// `words.txt`, the text that most scripts work on: lines of made-up words, the same every time.
pub fn words(lines: u32) -> String {
    const SYLLABLES: [&str; 16] =
        ["ba", "ce", "di", "fo", "gu", "ha", "je", "ki", "lo", "mu", "na", "pe", "ri", "so", "tu", "va"];
    let mut state = 7u32;
    let mut text = String::new();
    for n in 0..lines {
        for _ in 0..1 + n % 7 {
            for _ in 0..3 {
                state = state.wrapping_mul(1664525).wrapping_add(1013904223);
                text.push_str(SYLLABLES[(state >> 28) as usize]);
                if state & 0x300_0000 == 0 {
                    break;
                }
            }
            text.push(' ');
        }
        text.push('\n');
    }
    text
}
