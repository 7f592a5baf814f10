//! Why a request was refused, in words that lead to the cure.
