//! The arithmetic of policies, with sources.
