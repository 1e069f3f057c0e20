//! The floating-point mode of a thread: rounding, whether tiny numbers become 0, which exceptions trap.
//!
//! Hosts change it (games and audio programs flush tiny numbers to 0, numerical ones set the rounding or
//! trap). Results must not depend on that, so calls run in the standard mode and put the host's back, with
//! its exception flags as they were (on x86-64). Threads inherit the mode of the one that makes them.
#![allow(unsafe_code)]

use std::cell::Cell;

use machine::Mode;

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod machine {
    use std::arch::asm;

    pub type Mode = u32;

    /// Nearest rounding, all exceptions masked, no flushing.
    pub const STANDARD: Mode = 0x1f80;

    pub fn read() -> u32 {
        let mut mode = 0u32;
        // SAFETY: stores four bytes to a variable of four bytes.
        unsafe {
            asm!("stmxcsr [{}]", in(reg) &raw mut mode, options(nostack, preserves_flags));
        }
        mode
    }

    pub fn write(mode: u32) {
        // SAFETY: loads four bytes that are the standard mode or were read from the register, so no
        // reserved bit is set. It changes the exception flags, and nothing may be moved across it.
        unsafe {
            asm!("ldmxcsr [{}]", in(reg) &raw const mode, options(nostack));
        }
    }
}

#[cfg(all(target_arch = "aarch64", not(miri)))]
mod machine {
    use std::arch::asm;

    pub type Mode = u64;

    /// Nearest rounding, no traps, no flushing. The exception flags are in another register (FPSR), which is
    /// left alone: what the work raises stays raised here.
    pub const STANDARD: Mode = 0;

    pub fn read() -> u64 {
        let mode: u64;
        // SAFETY: reads a register that every program may read.
        unsafe {
            asm!("mrs {}, fpcr", out(reg) mode, options(nomem, nostack, preserves_flags));
        }
        mode
    }

    pub fn write(mode: u64) {
        // SAFETY: writes the standard mode or one that was read from the register. Nothing may be moved
        // across it.
        unsafe {
            asm!("msr fpcr, {}", in(reg) mode, options(nostack));
        }
    }
}

#[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
mod machine {
    /// Not known here, or out of reach of Miri; the mode is left alone.
    #[derive(Clone, Copy)]
    pub struct Mode;
    pub const STANDARD: Mode = Mode;
    pub fn read() -> Mode {
        Mode
    }
    pub fn write(_: Mode) {}
}

thread_local! {
    /// The mode of the host, while a call of this thread runs in the standard one.
    static HOST: Cell<Mode> = const { Cell::new(machine::STANDARD) };
}

/// Puts things back when it goes out of scope, also by a panic.
struct Back<F: Fn()>(F);

impl<F: Fn()> Drop for Back<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// Runs `work` in the standard mode.
pub(super) fn standard<T>(work: &mut dyn FnMut() -> T) -> T {
    let mode = machine::read();
    let outer = HOST.replace(mode);
    let _back = Back(|| {
        HOST.set(outer);
        machine::write(mode);
    });
    machine::write(machine::STANDARD);
    apart(work)
}

/// A call the compiler cannot look into: no arithmetic of the work moves to where the mode is another.
#[inline(never)]
fn apart<T>(work: impl FnOnce() -> T) -> T {
    work()
}

/// Runs `work`, which is the host's, in the mode the host had when it called.
pub(super) fn host<T>(work: impl FnOnce() -> T) -> T {
    let _back = Back(|| machine::write(machine::STANDARD));
    machine::write(HOST.get());
    apart(work)
}

#[cfg(all(test, target_arch = "x86_64", not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn the_mode_is_standard_inside_and_comes_back() {
        // Rounding up, tiny numbers flushed.
        let host = machine::STANDARD | 0x4000 | 0x8040;
        let before = machine::read();
        machine::write(host);
        let inside =
            standard(&mut || (machine::read(), super::host(machine::read), machine::read()));
        let panicked = std::panic::catch_unwind(|| {
            standard(&mut || -> () { std::panic::resume_unwind(Box::new(())) })
        });
        let after = machine::read();
        machine::write(before);
        assert_eq!(inside, (machine::STANDARD, host, machine::STANDARD));
        assert_eq!(after, host);
        assert!(panicked.is_err());
    }
}
