//! Why an order is not carried out, or a question not answered.
//!
//! The rules of the core refuse in enums of their own. Of which kind each refusal is, and so how API, console and commands
//! answer it, is said here and nowhere else.

use std::fmt;

use sekisho_core::actor::ForeignTenant;
use sekisho_core::api_key::KeyRefusal;
use sekisho_core::deletion::DeletionRefusal;
use sekisho_core::directory::NoTenant;
use sekisho_core::notification::reminder::FarDay;
use sekisho_core::notification::{ResendRefusal, SuppressionRefusal};
use sekisho_core::selection::SelectionRefusal;
use sekisho_core::state::Unreadable;
use sekisho_core::user::UserRefusal;

use crate::transact::TransactError;
use crate::types::FieldError;

#[derive(Debug)]
pub enum Refusal {
    /// It makes no sense; says what to write instead.
    Invalid(String),
    /// Some of its fields do: what is wrong with each.
    Fields(Vec<FieldError>),
    /// What it names is not there.
    Missing(String),
    /// It contradicts what is there already.
    Conflict(String),
    /// It reaches for what is another's.
    Forbidden(FieldError),
    /// Not now: in so many seconds.
    RetryLater {
        detail: String,
        seconds: u64,
    },
    /// Too few places are free.
    Full {
        free: u32,
        /// When the next hold ends, if nobody pays it.
        retry_after_seconds: Option<u64>,
    },
    Store(sekisho_store::Error),
}

pub type Result<T> = std::result::Result<T, Refusal>;

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(detail)
            | Self::Missing(detail)
            | Self::Conflict(detail)
            | Self::RetryLater { detail, .. } => f.write_str(detail),
            Self::Forbidden(error) => error.fmt(f),
            Self::Fields(errors) => {
                let errors: Vec<_> = errors.iter().map(FieldError::to_string).collect();
                f.write_str(&errors.join("; "))
            }
            Self::Full { free, retry_after_seconds } => {
                write!(f, "too few places are free: {free}")?;
                match retry_after_seconds {
                    Some(seconds) => write!(
                        f,
                        "; the next hold ends in {seconds} seconds unless it is paid: try again then"
                    ),
                    None => f.write_str("; all others are sold"),
                }
            }
            Self::Store(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Refusal {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Invalid(_)
            | Self::Fields(_)
            | Self::Missing(_)
            | Self::Conflict(_)
            | Self::Forbidden(_)
            | Self::RetryLater { .. }
            | Self::Full { .. } => None,
            Self::Store(error) => std::error::Error::source(error),
        }
    }
}

impl From<sekisho_store::Error> for Refusal {
    fn from(error: sekisho_store::Error) -> Self {
        Self::Store(error)
    }
}

impl From<Unreadable> for Refusal {
    fn from(Unreadable(error): Unreadable) -> Self {
        Self::Store(sekisho_store::Error::corrupt(error))
    }
}

impl<R: Into<Self>> From<TransactError<R>> for Refusal {
    fn from(error: TransactError<R>) -> Self {
        match error {
            TransactError::Refused(refused) => refused.into(),
            TransactError::Contended | TransactError::Lost => {
                Self::Conflict("the record was changed concurrently too often; try again".into())
            }
            TransactError::Store(error) => Self::Store(error),
        }
    }
}

impl From<ForeignTenant> for Refusal {
    fn from(refused: ForeignTenant) -> Self {
        Self::Forbidden(FieldError::new("tenant", refused.to_string()))
    }
}

impl From<NoTenant> for Refusal {
    fn from(refused: NoTenant) -> Self {
        Self::Fields(vec![FieldError::new("tenant", refused.to_string())])
    }
}

impl From<SelectionRefusal> for Refusal {
    fn from(refused: SelectionRefusal) -> Self {
        Self::Invalid(refused.to_string())
    }
}

impl From<FarDay> for Refusal {
    fn from(refused: FarDay) -> Self {
        Self::Invalid(refused.to_string())
    }
}

impl From<KeyRefusal> for Refusal {
    fn from(refused: KeyRefusal) -> Self {
        let detail = refused.to_string();
        match refused {
            KeyRefusal::InvalidName | KeyRefusal::ReservedName(_) => Self::Invalid(detail),
            KeyRefusal::ConfiguredName(_) | KeyRefusal::TakenName(_) => Self::Conflict(detail),
            KeyRefusal::Unknown(_) => Self::Missing(detail),
        }
    }
}

impl From<UserRefusal> for Refusal {
    fn from(refused: UserRefusal) -> Self {
        let detail = refused.to_string();
        match refused {
            UserRefusal::Unknown(_) | UserRefusal::NoInvite => Self::Missing(detail),
            UserRefusal::LastAdmin(_) | UserRefusal::TakenName(_) => Self::Conflict(detail),
            UserRefusal::ShutOut => Self::RetryLater { detail, seconds: UserRefusal::SHUT_OUT_SECONDS },
        }
    }
}

impl From<SuppressionRefusal> for Refusal {
    fn from(refused: SuppressionRefusal) -> Self {
        let detail = refused.to_string();
        match refused {
            SuppressionRefusal::NotSuppressed(_) => Self::Missing(detail),
            SuppressionRefusal::Already(..) => Self::Conflict(detail),
        }
    }
}

impl From<ResendRefusal> for Refusal {
    fn from(refused: ResendRefusal) -> Self {
        let detail = refused.to_string();
        match refused {
            ResendRefusal::Unknown(_) => Self::Missing(detail),
            ResendRefusal::UnderWay(..) | ResendRefusal::Off | ResendRefusal::Suppressed(..) => {
                Self::Conflict(detail)
            }
            ResendRefusal::OtherAddress => Self::Forbidden(FieldError::new("to", detail)),
        }
    }
}

impl From<DeletionRefusal> for Refusal {
    fn from(refused: DeletionRefusal) -> Self {
        let detail = refused.to_string();
        match refused {
            DeletionRefusal::NoMember { .. } | DeletionRefusal::NoBilling(_) => Self::Missing(detail),
            DeletionRefusal::BothModes(_) => Self::Conflict(detail),
            DeletionRefusal::Unreadable(error) => error.into(),
        }
    }
}
