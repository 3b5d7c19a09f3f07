use std::collections::BTreeMap;
use std::sync::mpsc;
use std::thread;

fn main() {
    let text = std::fs::read_to_string("words.txt").expect("words.txt");
    let (tx, rx) = mpsc::channel();
    for (n, part) in text.as_bytes().chunks(text.len() / 4 + 1).enumerate() {
        let (tx, part) = (tx.clone(), part.to_vec());
        thread::spawn(move || tx.send((n, part.iter().map(|b| u64::from(*b)).sum::<u64>())).expect("receiver"));
    }
    drop(tx);
    let sums: BTreeMap<usize, u64> = rx.iter().collect();
    println!("{sums:?}");
    let caught = std::panic::catch_unwind(|| std::panic::resume_unwind(Box::new("on purpose")));
    println!("{}", caught.is_err());
}
