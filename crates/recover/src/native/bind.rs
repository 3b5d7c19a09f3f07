//! Only the pool's file, privately: where overlays are refused.
//!
//! A mount point cannot be deleted or renamed (`EBUSY`): a recovery that puts a new file in the pool's place fails here
//! and does not fail elsewhere.

use std::ffi::CString;
use std::io;
use std::path::PathBuf;

use super::placement::{Placement, Pool};
use supervise::mounts::{Mount, Mounts, c_path};

#[derive(Debug)]
pub(super) struct Bind {
    pools: Vec<Pool>,
}

impl Bind {
    pub fn prepare(pools: &[Pool]) -> io::Result<Bind> {
        if pools.iter().any(|pool| !pool.exists) {
            return Err(io::Error::other("there is no file at the pool's path to mount upon"));
        }
        Ok(Bind { pools: pools.to_vec() })
    }
}

impl Placement for Bind {
    fn mounts(&mut self, _: &[PathBuf]) -> io::Result<Mounts> {
        let mut mounts = Mounts::default();
        for pool in &self.pools {
            let from = CString::new(mounts.hold(&pool.content)?)?;
            mounts.add(Mount::Bind { from, onto: c_path(&pool.path)? });
        }
        Ok(mounts)
    }

    fn content(&self, pool: usize) -> PathBuf {
        self.pools[pool].content.clone()
    }
}
