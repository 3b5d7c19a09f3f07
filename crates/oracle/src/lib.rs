//! Oracles: was what recovery did right?
