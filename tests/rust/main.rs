//! Integration tests of the engine, without Python.
