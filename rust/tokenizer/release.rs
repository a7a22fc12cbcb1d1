//! Memory back to the system.

/// Gives freed memory back to the system, where the allocator keeps it otherwise.
///
/// *Measured*: a reference is half a million small allocations among others that stay, of which glibc returns nothing by
/// itself; Qwen3's keeps 100 MB of the process that way.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "a function of the C library: it takes a number, and may be called at any time")]
pub(super) fn freed_memory() {
    unsafe extern "C" {
        safe fn malloc_trim(pad: usize) -> std::ffi::c_int;
    }
    _ = malloc_trim(0);
}

/// Other allocators give it back by themselves.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(super) fn freed_memory() {}
