//! A line of a commit, borrowed from its bytes, for the one reader that is fast.
//!
//! The fields of file actions that reconciliation and scans need; everything else is passed over without
//! being kept. The other actions are few and are read as in [`crate::protocol::Action`].

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::protocol::{
    AddCdcFile, CommitInfo, DeletionVectorDescriptor, DomainMetadata, Metadata, Protocol, SetTransaction,
};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Line<'a> {
    #[serde(borrow)]
    pub(super) add: Option<AddLine<'a>>,
    #[serde(borrow)]
    pub(super) remove: Option<RemoveLine<'a>>,
    pub(super) cdc: Option<AddCdcFile>,
    pub(super) meta_data: Option<Metadata>,
    pub(super) protocol: Option<Protocol>,
    pub(super) txn: Option<SetTransaction>,
    pub(super) commit_info: Option<CommitInfo>,
    pub(super) domain_metadata: Option<DomainMetadata>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AddLine<'a> {
    #[serde(borrow)]
    pub(super) path: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) partition_values: Option<Pairs<'a>>,
    pub(super) size: i64,
    pub(super) modification_time: Option<i64>,
    pub(super) data_change: Option<bool>,
    #[serde(borrow)]
    pub(super) stats: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) tags: Option<Pairs<'a>>,
    pub(super) deletion_vector: Option<DeletionVectorDescriptor>,
    pub(super) base_row_id: Option<i64>,
    pub(super) default_row_commit_version: Option<i64>,
    pub(super) clustering_provider: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RemoveLine<'a> {
    #[serde(borrow)]
    pub(super) path: Cow<'a, str>,
    pub(super) deletion_timestamp: Option<i64>,
    pub(super) data_change: Option<bool>,
    pub(super) extended_file_metadata: Option<bool>,
    #[serde(borrow)]
    pub(super) partition_values: Option<Pairs<'a>>,
    pub(super) size: Option<i64>,
    /// As it stands there, quotes and all: few ask for it.
    #[serde(borrow)]
    pub(super) stats: Option<&'a RawValue>,
    pub(super) deletion_vector: Option<DeletionVectorDescriptor>,
    pub(super) base_row_id: Option<i64>,
    pub(super) default_row_commit_version: Option<i64>,
}

/// A string that borrows where it holds no escape.
pub(super) struct Text<'a>(pub(super) Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextVisitor;
        impl<'de> Visitor<'de> for TextVisitor {
            type Value = Text<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(TextVisitor)
    }
}

/// A map from string to nullable string, in the order of the text.
pub(super) struct Pairs<'a>(pub(super) Vec<(Text<'a>, Option<Text<'a>>)>);

impl<'de: 'a, 'a> Deserialize<'de> for Pairs<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct PairsVisitor;
        impl<'de> Visitor<'de> for PairsVisitor {
            type Value = Pairs<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map from string to string")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Pairs(pairs))
            }
        }
        deserializer.deserialize_map(PairsVisitor)
    }
}
