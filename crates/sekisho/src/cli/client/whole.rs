//! An answer read into its type and kept as it came: a newer server may say more than is known here, and `--json` shows it.

use std::ops::Deref;

use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

#[derive(Clone)]
pub struct Whole<T> {
    came: Value,
    pub known: T,
}

impl<T> Deref for Whole<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.known
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Whole<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let came = Value::deserialize(deserializer)?;
        let known = T::deserialize(&came).map_err(D::Error::custom)?;
        Ok(Self { came, known })
    }
}

impl<T> Serialize for Whole<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.came.serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::types::Source;

    #[test]
    fn h2_what_a_newer_server_says_is_shown_too() {
        let came = json!({ "name": "shop", "provider": "stripe", "livemode": null, "color": "red" });
        let read: Whole<Source> = serde_json::from_value(came.clone()).unwrap();
        assert_eq!((&*read.name, json!(read)), ("shop", came));
        assert!(serde_json::from_value::<Whole<Source>>(json!({ "color": "red" })).is_err());
    }
}
