//! How settings of other crates are written down: by the names that the command line uses.

pub(crate) mod model {
    use persistency::model::ModelKind;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub fn serialize<S: Serializer>(model: &ModelKind, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(model.name())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<ModelKind, D::Error> {
        String::deserialize(from)?.parse().map_err(D::Error::custom)
    }
}

pub(crate) mod fences {
    use persistency::model::Fences;
    use serde::{Deserialize, Deserializer, Serializer};

    /// As the option `--strict-fences`: given or not.
    pub fn serialize<S: Serializer>(fences: &Fences, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_bool(*fences == Fences::Strict)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Fences, D::Error> {
        Ok(if bool::deserialize(from)? { Fences::Strict } else { Fences::All })
    }
}

/// Numbers too large for JSON's.
pub(crate) mod decimal {
    use num_bigint::BigUint;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub fn serialize<S: Serializer>(number: &BigUint, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(number)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<BigUint, D::Error> {
        String::deserialize(from)?.parse().map_err(D::Error::custom)
    }
}
