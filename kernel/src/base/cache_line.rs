//! Values that share no cache line with others.

/// A value with cache lines of its own, so that threads that change it do not slow down threads that use others. The
/// prefetcher of many processors reads two lines of 64 bytes at a time.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct CacheLine<T>(pub T);
