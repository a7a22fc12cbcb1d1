//! Output buffers that are used again, because touching fresh pages costs more than copying into them.
//!
//! *Invariant*: a buffer is written again only when nobody else owns it. The pool keeps one share of each buffer it gave;
//! every Arrow array, export, numpy view and tensor over it holds another, and as long as one of them lives the buffer
//! is left alone. Nobody waits for the pool: who finds it busy, as a process does that was forked while another thread
//! used it, does without.

use std::sync::{Mutex, MutexGuard, TryLockError};

use arrow_buffer::{Buffer, MutableBuffer};

/// A pool of output buffers.
#[derive(Debug, Default)]
pub struct Pool {
    buffers: Mutex<Vec<Buffer>>,
    limit: usize,
}

impl Pool {
    /// A pool that remembers at most `limit` buffers.
    pub const fn new(limit: usize) -> Self {
        Self { buffers: Mutex::new(Vec::new()), limit }
    }

    /// A buffer of at least `bytes` bytes that nobody else sees; its content is arbitrary.
    pub(crate) fn take(&self, bytes: usize) -> MutableBuffer {
        let bytes = bytes.next_multiple_of(64); // whole values of every width
        self.free(bytes).unwrap_or_else(|| MutableBuffer::from_len_zeroed(bytes))
    }

    fn free(&self, bytes: usize) -> Option<MutableBuffer> {
        let mut buffers = self.lock()?;
        // A count of one cannot rise while the lock is held: only this pool could clone the buffer.
        let fits = |buffer: &Buffer| buffer.strong_count() == 1 && buffer.len() >= bytes && buffer.len() / 4 <= bytes;
        let place = buffers.iter().position(fits)?;
        buffers.swap_remove(place).into_mutable().ok()
    }

    /// Remembers a buffer that was just filled, to use it again once its other owners are gone.
    pub(crate) fn keep(&self, buffer: &Buffer) {
        let Some(mut buffers) = self.lock() else { return };
        if buffers.len() >= self.limit {
            // The place of a buffer that is in use elsewhere is better taken by one that comes back soon.
            let Some(place) = buffers.iter().position(|old| old.strong_count() > 1) else { return };
            buffers.swap_remove(place);
        }
        if self.limit > 0 {
            buffers.push(buffer.clone());
        }
    }

    fn lock(&self) -> Option<MutexGuard<'_, Vec<Buffer>>> {
        match self.buffers.try_lock() {
            Ok(buffers) => Some(buffers),
            Err(TryLockError::Poisoned(error)) => Some(error.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_comes_back_only_when_its_last_owner_is_gone() {
        let pool = Pool::new(4);
        let first: Buffer = pool.take(256).into();
        let address = first.as_ptr();
        pool.keep(&first);
        let view = first.slice(8);
        drop(first);
        assert_ne!(pool.take(256).as_ptr(), address);
        drop(view);
        assert_eq!(pool.take(256).as_ptr(), address);
    }

    #[test]
    fn a_pool_of_none_remembers_nothing() {
        let pool = Pool::new(0);
        pool.keep(&Buffer::from(vec![0_u8; 64]));
        assert!(pool.lock().is_some_and(|buffers| buffers.is_empty()));
    }
}
