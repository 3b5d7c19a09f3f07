//! The functions of libpmemobj that say what a transaction covers, and how they pass it.
//!
//! A `PMEMoid` is two words, so it takes two integer arguments (System V ABI §3.2.3); what returns one returns its offset in
//! `rdx`, which a trace does not hold.

/// What a watched function does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Function {
    /// `(pool, env, …)`
    Begin,
    /// Leaves the stage in which the transaction's work is done.
    Leave,
    End,
    /// `(oid.pool, oid.offset, start, size, [flags])`
    AddRange,
    /// `(pointer, size, [flags])`
    AddDirect,
    /// `(size, type)`
    Alloc,
    /// Allocates what its arguments do not tell.
    AllocUnknown,
    /// `(oid.pool, oid.offset)`
    Free,
}

const FUNCTIONS: &[(&str, Function)] = &[
    ("pmemobj_tx_begin", Function::Begin),
    ("pmemobj_tx_commit", Function::Leave),
    ("pmemobj_tx_process", Function::Leave),
    ("pmemobj_tx_abort", Function::Leave),
    ("pmemobj_tx_end", Function::End),
    ("pmemobj_tx_add_range", Function::AddRange),
    ("pmemobj_tx_xadd_range", Function::AddRange),
    ("pmemobj_tx_add_range_direct", Function::AddDirect),
    ("pmemobj_tx_xadd_range_direct", Function::AddDirect),
    ("pmemobj_tx_alloc", Function::Alloc),
    ("pmemobj_tx_zalloc", Function::Alloc),
    ("pmemobj_tx_xalloc", Function::Alloc),
    ("pmemobj_tx_realloc", Function::AllocUnknown),
    ("pmemobj_tx_zrealloc", Function::AllocUnknown),
    ("pmemobj_tx_strdup", Function::AllocUnknown),
    ("pmemobj_tx_xstrdup", Function::AllocUnknown),
    ("pmemobj_tx_wcsdup", Function::AllocUnknown),
    ("pmemobj_tx_xwcsdup", Function::AllocUnknown),
    ("pmemobj_tx_publish", Function::AllocUnknown),
    ("pmemobj_tx_xpublish", Function::AllocUnknown),
    ("pmemobj_tx_free", Function::Free),
    ("pmemobj_tx_xfree", Function::Free),
];

/// The symbols to watch.
pub(crate) fn symbols() -> Vec<String> {
    FUNCTIONS.iter().map(|(symbol, _)| (*symbol).to_owned()).collect()
}

pub(crate) fn by_symbol(symbol: &str) -> Option<Function> {
    FUNCTIONS.iter().find(|(known, _)| *known == symbol).map(|(_, function)| *function)
}
