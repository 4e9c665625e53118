//! Errors of the core as errors of DataFusion.

use datafusion_common::DataFusionError;

/// Wraps an error of the core, which can be found again by `downcast_ref` on the cause.
pub(crate) fn external(error: deltalog::Error) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}
