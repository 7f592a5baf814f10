//! The kinds of faults, and what they are called on the command line.

use std::str::FromStr;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TortureFault {
    Kill,
    Stop,
    PgRestart,
    PgTerminate,
    CutAfterCommit,
    Clock,
}

impl TortureFault {
    pub const ALL: [Self; 6] =
        [Self::Kill, Self::Stop, Self::PgRestart, Self::PgTerminate, Self::CutAfterCommit, Self::Clock];

    pub fn name(self) -> &'static str {
        match self {
            Self::Kill => "kill",
            Self::Stop => "stop",
            Self::PgRestart => "pg-restart",
            Self::PgTerminate => "pg-terminate",
            Self::CutAfterCommit => "cut-after-commit",
            Self::Clock => "clock",
        }
    }

    pub fn needs_postgres(self) -> bool {
        match self {
            Self::PgRestart | Self::PgTerminate | Self::CutAfterCommit => true,
            Self::Kill | Self::Stop | Self::Clock => false,
        }
    }
}

impl FromStr for TortureFault {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let names = Self::ALL.map(Self::name).join(", ");
        Self::ALL.into_iter().find(|fault| fault.name() == text).ok_or(format!("{text:?} is none of {names}"))
    }
}
