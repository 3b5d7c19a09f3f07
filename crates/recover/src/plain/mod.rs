//! Plain mode: the uninstrumented binary runs on private pool content that lies at the pool's usual path.
