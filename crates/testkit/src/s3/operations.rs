//! The S3 operations that the server supports.

use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use s3s::dto::{
    AbortMultipartUploadInput, AbortMultipartUploadOutput, CommonPrefix, CompleteMultipartUploadInput,
    CompleteMultipartUploadOutput, CreateMultipartUploadInput, CreateMultipartUploadOutput,
    DeleteObjectInput, DeleteObjectOutput, DeleteObjectsInput, DeleteObjectsOutput, DeletedObject, ETag,
    ETagCondition, EncodingType, GetObjectInput, GetObjectOutput, HeadBucketInput, HeadBucketOutput,
    HeadObjectInput, HeadObjectOutput, ListObjectsV2Input, ListObjectsV2Output, PutObjectInput,
    PutObjectOutput, StreamingBlob, UploadPartInput, UploadPartOutput,
};
use s3s::{Body, S3, S3Error, S3ErrorCode, S3Request, S3Response, S3Result, s3_error};

use super::Shared;
use super::buckets::{Condition, Etag, Object, Refusal};
use super::listing::{Entry, Listing};

/// Implements the operations on the contents of a server.
pub(super) struct Operations(pub(super) Arc<Shared>);

impl From<Refusal> for S3Error {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::NoSuchBucket => s3_error!(NoSuchBucket, "The specified bucket does not exist"),
            Refusal::NoSuchKey => s3_error!(NoSuchKey, "The specified key does not exist."),
            Refusal::NoSuchUpload => s3_error!(NoSuchUpload, "The specified upload does not exist."),
            Refusal::InvalidPart => {
                s3_error!(InvalidPart, "A part was not found, or it has a different tag.")
            }
            Refusal::InvalidPartOrder => {
                s3_error!(InvalidPartOrder, "The parts were not in ascending order.")
            }
            Refusal::EntityTooSmall => s3_error!(EntityTooSmall, "A part is smaller than the minimum."),
            Refusal::PreconditionFailed => {
                s3_error!(PreconditionFailed, "At least one of the pre-conditions you specified did not hold")
            }
        }
    }
}

type Answer<T> = S3Result<S3Response<T>>;

fn answer<T>(output: T) -> Answer<T> {
    Ok(S3Response::new(output))
}

fn quoted(etag: Etag) -> Option<ETag> {
    Some(ETag::Strong(etag.to_string()))
}

async fn content(body: Option<StreamingBlob>) -> S3Result<Bytes> {
    let Some(mut body) = body else { return Ok(Bytes::new()) };
    let first = body.next().await.transpose();
    let Some(first) = first.map_err(|source| S3Error::with_source(S3ErrorCode::IncompleteBody, source))?
    else {
        return Ok(Bytes::new());
    };
    let mut rest = Vec::new();
    while let Some(chunk) = body.next().await {
        let chunk = chunk.map_err(|source| S3Error::with_source(S3ErrorCode::IncompleteBody, source))?;
        rest.extend_from_slice(&chunk);
    }
    // If the body consists of a single piece, it is not copied.
    Ok(if rest.is_empty() { first } else { [first, rest.into()].concat().into() })
}

/// Checks the conditions of a read.
fn check_read(object: &Object, is: Option<ETagCondition>, is_not: Option<ETagCondition>) -> S3Result<()> {
    let matches = |condition: &ETagCondition| match condition {
        ETagCondition::Any => true,
        ETagCondition::ETag(tag) => tag.value() == object.etag.to_string(),
    };
    let is_weak = |condition: &ETagCondition| matches!(condition, ETagCondition::ETag(ETag::Weak(_)));
    // A weak tag does not identify the bytes, so `If-Match` never matches it. (RFC 9110, 13.1.1.)
    if is.is_some_and(|condition| is_weak(&condition) || !matches(&condition)) {
        return Err(Refusal::PreconditionFailed.into());
    }
    if is_not.is_some_and(|condition| matches(&condition)) {
        return Err(s3_error!(NotModified));
    }
    Ok(())
}

impl Operations {
    /// Returns the entity tag in the response to a read.
    fn tag(&self, etag: Etag) -> Option<ETag> {
        if self.0.settings().weak_tags { Some(ETag::Weak(etag.to_string())) } else { quoted(etag) }
    }

    fn condition(&self, is: Option<ETagCondition>, is_not: Option<ETagCondition>) -> S3Result<Condition> {
        // A weak tag never matches. (RFC 9110, 13.1.1.)
        if matches!(&is, Some(ETagCondition::ETag(ETag::Weak(_)))) {
            return Err(Refusal::PreconditionFailed.into());
        }
        let condition = match (is, is_not) {
            (None, None) => Condition::Always,
            (None, Some(ETagCondition::Any)) => Condition::IfAbsent,
            (Some(ETagCondition::ETag(tag)), None) => Condition::IfMatch(tag.value().to_owned()),
            _ => return Err(s3_error!(NotImplemented, "S3 does not support this condition for a write")),
        };
        let is_ignored = self.0.settings().ignores_conditions;
        Ok(if is_ignored { Condition::Always } else { condition })
    }
}

#[async_trait::async_trait]
impl S3 for Operations {
    async fn head_bucket(&self, request: S3Request<HeadBucketInput>) -> Answer<HeadBucketOutput> {
        self.0.buckets().get(&request.input.bucket)?;
        answer(HeadBucketOutput { bucket_region: self.0.settings().region.clone(), ..Default::default() })
    }

    async fn get_object(&self, request: S3Request<GetObjectInput>) -> Answer<GetObjectOutput> {
        let input = request.input;
        let object = self.0.buckets().get(&input.bucket)?.object(&input.key)?.clone();
        check_read(&object, input.if_match, input.if_none_match)?;
        let size = object.bytes.len() as u64;
        let (mut bytes, mut content_range) = (object.bytes, None);
        if let Some(range) = input.range {
            let not_there = || s3_error!(InvalidRange, "The requested range is not satisfiable");
            let range = range.check(size).ok().filter(|range| !range.is_empty()).ok_or_else(not_there)?;
            content_range = Some(format!("bytes {}-{}/{size}", range.start, range.end - 1));
            bytes = bytes.slice(range.start as usize..range.end as usize);
        }
        answer(GetObjectOutput {
            accept_ranges: Some("bytes".to_owned()),
            content_length: Some(bytes.len() as i64),
            content_range,
            e_tag: self.tag(object.etag),
            last_modified: Some(object.modified.into()),
            body: Some(Body::from(bytes).into()),
            ..Default::default()
        })
    }

    async fn head_object(&self, request: S3Request<HeadObjectInput>) -> Answer<HeadObjectOutput> {
        let input = request.input;
        let object = self.0.buckets().get(&input.bucket)?.object(&input.key)?.clone();
        check_read(&object, input.if_match, input.if_none_match)?;
        answer(HeadObjectOutput {
            accept_ranges: Some("bytes".to_owned()),
            content_length: Some(object.bytes.len() as i64),
            e_tag: self.tag(object.etag),
            last_modified: Some(object.modified.into()),
            ..Default::default()
        })
    }

    async fn put_object(&self, request: S3Request<PutObjectInput>) -> Answer<PutObjectOutput> {
        let input = request.input;
        let condition = self.condition(input.if_match, input.if_none_match)?;
        let object = Object::new(content(input.body).await?);
        let e_tag = quoted(object.etag);
        self.0.buckets().get_mut(&input.bucket)?.put(input.key, object, &condition)?;
        answer(PutObjectOutput { e_tag, ..Default::default() })
    }

    async fn delete_object(&self, request: S3Request<DeleteObjectInput>) -> Answer<DeleteObjectOutput> {
        let input = request.input;
        self.0.buckets().get_mut(&input.bucket)?.objects.remove(&input.key);
        answer(DeleteObjectOutput::default())
    }

    async fn delete_objects(&self, request: S3Request<DeleteObjectsInput>) -> Answer<DeleteObjectsOutput> {
        let input = request.input;
        let mut buckets = self.0.buckets();
        let bucket = buckets.get_mut(&input.bucket)?;
        let mut deleted = Vec::new();
        for identifier in input.delete.objects {
            bucket.objects.remove(&identifier.key);
            deleted.push(DeletedObject { key: Some(identifier.key), ..Default::default() });
        }
        let is_quiet = input.delete.quiet == Some(true);
        let deleted = if is_quiet { None } else { Some(deleted) };
        answer(DeleteObjectsOutput { deleted, ..Default::default() })
    }

    async fn list_objects_v2(&self, request: S3Request<ListObjectsV2Input>) -> Answer<ListObjectsV2Output> {
        let input = request.input;
        let continued = input.continuation_token.as_deref().map(last_of).transpose()?;
        let page_size = self.0.settings().page_size;
        let asked = input.max_keys.and_then(|keys| usize::try_from(keys).ok()).unwrap_or(page_size);
        let listing = Listing {
            prefix: input.prefix.as_deref().unwrap_or_default(),
            delimiter: input.delimiter.as_deref().unwrap_or_default(),
            after: continued.as_deref().or(input.start_after.as_deref()).unwrap_or_default(),
            limit: asked.min(page_size),
        };
        let is_url = input.encoding_type.as_ref().is_some_and(|kind| kind.as_str() == EncodingType::URL);
        let shown = |text: &str| match is_url {
            true => utf8_percent_encode(text, NON_ALPHANUMERIC).to_string(),
            false => text.to_owned(),
        };
        let (mut contents, mut common_prefixes) = (Vec::new(), Vec::new());
        let buckets = self.0.buckets();
        let bucket = buckets.get(&input.bucket)?;
        let (entries, has_more) = listing.page(&bucket.objects);
        for entry in &entries {
            match entry {
                Entry::CommonPrefix(prefix) => {
                    common_prefixes.push(CommonPrefix { prefix: Some(shown(prefix)) });
                }
                Entry::Key(key) => {
                    let object = bucket.object(key)?;
                    contents.push(s3s::dto::Object {
                        key: Some(shown(key)),
                        size: Some(object.bytes.len() as i64),
                        e_tag: quoted(object.etag),
                        last_modified: Some(object.modified.into()),
                        ..Default::default()
                    });
                }
            }
        }
        drop(buckets);
        let last = entries.last().filter(|_| has_more);
        answer(ListObjectsV2Output {
            key_count: Some(entries.len() as i32),
            max_keys: Some(listing.limit as i32),
            is_truncated: Some(has_more),
            next_continuation_token: last.map(|last| token(last.text())),
            contents: Some(contents),
            common_prefixes: Some(common_prefixes),
            name: Some(input.bucket),
            prefix: input.prefix.as_deref().map(shown),
            delimiter: input.delimiter.as_deref().map(shown),
            start_after: input.start_after.as_deref().map(shown),
            continuation_token: input.continuation_token,
            encoding_type: input.encoding_type,
            ..Default::default()
        })
    }

    async fn create_multipart_upload(
        &self,
        request: S3Request<CreateMultipartUploadInput>,
    ) -> Answer<CreateMultipartUploadOutput> {
        let input = request.input;
        let id = self.0.buckets().get_mut(&input.bucket)?.uploads.create(&input.key);
        answer(CreateMultipartUploadOutput {
            bucket: Some(input.bucket),
            key: Some(input.key),
            upload_id: Some(id),
            ..Default::default()
        })
    }

    async fn upload_part(&self, request: S3Request<UploadPartInput>) -> Answer<UploadPartOutput> {
        let input = request.input;
        let bytes = content(input.body).await?;
        let mut buckets = self.0.buckets();
        let uploads = &mut buckets.get_mut(&input.bucket)?.uploads;
        let etag = uploads.put(&input.key, &input.upload_id, input.part_number, bytes)?;
        answer(UploadPartOutput { e_tag: quoted(etag), ..Default::default() })
    }

    async fn complete_multipart_upload(
        &self,
        request: S3Request<CompleteMultipartUploadInput>,
    ) -> Answer<CompleteMultipartUploadOutput> {
        let input = request.input;
        let condition = self.condition(input.if_match, input.if_none_match)?;
        let minimum_part = self.0.settings().minimum_part;
        let parts = input.multipart_upload.and_then(|upload| upload.parts).unwrap_or_default();
        let named: Option<Vec<_>> = parts
            .into_iter()
            .map(|part| part.part_number.zip(part.e_tag.map(|tag| tag.value().to_owned())))
            .collect();
        let named = named.ok_or_else(|| s3_error!(MalformedXML, "A part needs a number and a tag."))?;
        let mut buckets = self.0.buckets();
        let bucket = buckets.get_mut(&input.bucket)?;
        let object = bucket.uploads.assemble(&input.key, &input.upload_id, &named, minimum_part)?;
        let e_tag = quoted(object.etag);
        // An upload whose completion is refused stays open: its owner must abort it.
        bucket.put(input.key.clone(), object, &condition)?;
        bucket.uploads.close(&input.key, &input.upload_id)?;
        answer(CompleteMultipartUploadOutput {
            bucket: Some(input.bucket),
            key: Some(input.key),
            e_tag,
            ..Default::default()
        })
    }

    async fn abort_multipart_upload(
        &self,
        request: S3Request<AbortMultipartUploadInput>,
    ) -> Answer<AbortMultipartUploadOutput> {
        let input = request.input;
        self.0.buckets().get_mut(&input.bucket)?.uploads.close(&input.key, &input.upload_id)?;
        answer(AbortMultipartUploadOutput::default())
    }
}

/// Returns a continuation token, which encodes where a page ended. It does not look like a key, so that clients cannot
/// confuse the two.
fn token(last: &str) -> String {
    format!("after-{}", utf8_percent_encode(last, NON_ALPHANUMERIC))
}

fn last_of(token: &str) -> S3Result<String> {
    let last = token.strip_prefix("after-").map(super::requests::decoded);
    last.ok_or_else(|| s3_error!(InvalidArgument, "The continuation token provided is incorrect"))
}
