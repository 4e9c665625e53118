// The table of the examples in the documentation: `id` is 1 and 2 since version 0, and 3 since version 1. The change
// data feed is enabled.

fn example_table() -> deltalog::Result<(tempfile::TempDir, deltalog::Storage)> {
    use std::sync::Arc;

    use arrow::array::{Int64Array, RecordBatch};
    use deltalog::{
        Environment, Operation, PendingWrite, PrimitiveType, SaveMode, Storage, StructField, StructType, WriteRequest,
    };

    let directory = tempfile::tempdir().expect("a directory");
    let storage = Storage::open(directory.path().to_str().expect("a path in UTF-8"), [])?;
    let schema = StructType::try_new(vec![StructField::new("id", PrimitiveType::Long, true)])?;
    for ids in [vec![1, 2], vec![3]] {
        let mut request = WriteRequest::new(schema.clone(), SaveMode::Append);
        request.configuration = [("delta.enableChangeDataFeed".to_owned(), "true".to_owned())].into();
        let write = PendingWrite::begin(&storage, request, &Environment::system())?.expect("a write");
        let ids = Arc::new(Int64Array::from(ids));
        let batch = RecordBatch::try_new(Arc::clone(write.arrow_schema()), vec![ids]).expect("a batch");
        let mut writer = write.writer()?;
        writer.write(&batch)?;
        write.commit(writer.finish()?, Operation::new("WRITE"))?;
    }
    Ok((directory, storage))
}
