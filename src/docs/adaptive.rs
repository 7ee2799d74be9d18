//! The adaptive limit.
