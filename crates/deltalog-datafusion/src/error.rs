//! Converts errors of deltalog to errors of DataFusion.

use datafusion_common::DataFusionError;

/// Wraps an error of deltalog, which callers can get back by applying `downcast_ref` to the cause.
pub(crate) fn external(error: deltalog::Error) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}
