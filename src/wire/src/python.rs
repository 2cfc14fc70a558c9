//! Why a process that runs Python gives no Python frames.

/// Why the interpreter of a process is not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum PythonRefusal {
    /// Its version says nothing, or is none that is understood.
    UnknownVersion = 1,
    /// An alpha or beta version, whose structures still change.
    PreRelease,
    /// Built without the global interpreter lock.
    FreeThreaded,
    /// Built for debugging CPython, with other structures.
    DebugBuild,
    /// The interpreter lacks a symbol, or its description of its structures is not that of its
    /// version.
    Structures,
    /// Its library was unloaded.
    Unloaded,
}

impl PythonRefusal {
    const ALL: [Self; 6] = [
        Self::UnknownVersion,
        Self::PreRelease,
        Self::FreeThreaded,
        Self::DebugBuild,
        Self::Structures,
        Self::Unloaded,
    ];

    /// In words, for a message.
    pub const fn description(self) -> &'static str {
        match self {
            Self::UnknownVersion => "this version of CPython is not known",
            Self::PreRelease => "it is an alpha or beta version of CPython",
            Self::FreeThreaded => "it is a free-threaded build of CPython",
            Self::DebugBuild => "it is a debug build of CPython",
            Self::Structures => "the interpreter's structures are not those of its version",
            Self::Unloaded => "the interpreter's library was unloaded",
        }
    }

    /// The reason as a word of shared memory; `None` is 0.
    pub const fn to_word(this: Option<Self>) -> u32 {
        match this {
            None => 0,
            Some(refusal) => refusal as u32,
        }
    }

    pub(crate) fn from_word(word: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|refusal| *refusal as u32 == word)
    }
}

#[cfg(test)]
mod tests {
    use super::PythonRefusal;

    #[test]
    fn words_come_back() {
        for refusal in PythonRefusal::ALL {
            let word = PythonRefusal::to_word(Some(refusal));
            assert_eq!(PythonRefusal::from_word(word), Some(refusal));
        }
        assert_eq!(PythonRefusal::from_word(PythonRefusal::to_word(None)), None);
        assert_eq!(PythonRefusal::from_word(u32::MAX), None);
    }
}
