//! A hint to the processor.

/// Fetches an entry of a table that will be read soon; nothing where there is none.
#[inline(always)]
#[expect(clippy::inline_always, reason = "it is one instruction")]
#[cfg_attr(target_arch = "x86_64", expect(unsafe_code, reason = "measured: much of the time is waiting for tables"))]
pub(super) fn prefetch<T>(table: &[T], index: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(entry) = table.get(index) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch is a hint: it reads nothing that the program could see.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(entry).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (table, index);
}
